package io.idempotence.spring.form;

import java.util.Map;
import java.util.Set;
import org.thymeleaf.context.ITemplateContext;
import org.thymeleaf.context.IWebContext;
import org.thymeleaf.dialect.AbstractProcessorDialect;
import org.thymeleaf.engine.AttributeName;
import org.thymeleaf.exceptions.TemplateProcessingException;
import org.thymeleaf.model.AttributeValueQuotes;
import org.thymeleaf.model.IModel;
import org.thymeleaf.model.IProcessableElementTag;
import org.thymeleaf.processor.IProcessor;
import org.thymeleaf.processor.element.AbstractAttributeTagProcessor;
import org.thymeleaf.processor.element.IElementTagStructureHandler;
import org.thymeleaf.templatemode.TemplateMode;

/** The Thymeleaf dialect: {@code <form method="post" idempotence:protect>} gets a hidden field with a new token. */
final class IdempotenceDialect extends AbstractProcessorDialect {
    private static final String PREFIX = "idempotence";
    /** After the attributes of Thymeleaf and Spring, which may set the form's method. */
    private static final int PRECEDENCE = 10_000;

    IdempotenceDialect() {
        super("Idempotence", PREFIX, PRECEDENCE);
    }

    @Override
    public Set<IProcessor> getProcessors(String dialectPrefix) {
        return Set.of(new Protect(dialectPrefix));
    }

    private static final class Protect extends AbstractAttributeTagProcessor {
        Protect(String prefix) {
            super(TemplateMode.HTML, prefix, "form", false, "protect", true, PRECEDENCE, true);
        }

        @Override
        protected void doProcess(
                ITemplateContext context,
                IProcessableElementTag tag,
                AttributeName attributeName,
                String attributeValue,
                IElementTagStructureHandler structure) {
            if (!"post".equalsIgnoreCase(tag.getAttributeValue("method"))) {
                throw new TemplateProcessingException(
                        "idempotence:protect expects a form with method=\"post\": only a POST runs something that must not run twice");
            }
            Object token =
                    context instanceof IWebContext web ? web.getExchange().getAttributeValue(FormTokens.TOKEN) : null;
            if (token == null) {
                throw new TemplateProcessingException("idempotence:protect found no request attribute '"
                        + FormTokens.TOKEN + "': this page is not rendered for a request that passed the form filter");
            }
            IModel field = context.getModelFactory().createModel();
            field.add(context.getModelFactory()
                    .createStandaloneElementTag(
                            "input",
                            Map.of("type", "hidden", "name", FormTokens.PARAMETER, "value", token.toString()),
                            AttributeValueQuotes.DOUBLE,
                            false,
                            true));
            structure.insertImmediatelyAfter(field, false);
        }
    }
}
