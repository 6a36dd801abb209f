package io.idempotence.spring.method;

import io.idempotence.IdempotenceId;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.IdempotenceIdGenerator.BusinessFields;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.expression.EvaluationException;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelCompilerMode;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** The expression for the ID of a bean method, parsed once. Thread-safe. */
final class IdExpression {
    private static final ParameterNameDiscoverer NAMES = new DefaultParameterNameDiscoverer();

    private final String text;
    private final String where;
    private final Method method;
    private final SpelExpression expression;
    private final BeanFactoryResolver beans;

    private IdExpression(String text, String where, Method method, SpelExpression expression, BeanFactory beans) {
        this.text = text;
        this.where = where;
        this.method = method;
        this.expression = expression;
        this.beans = new BeanFactoryResolver(beans);
    }

    /** Parses an expression. Returns null after a fault. */
    static @Nullable IdExpression of(String text, Method method, BeanFactory beans, OperationFaults faults) {
        SpelExpression parsed;
        try {
            parsed = new SpelExpressionParser(new SpelParserConfiguration(
                            SpelCompilerMode.MIXED, method.getDeclaringClass().getClassLoader()))
                    .parseRaw(text);
        } catch (ParseException | IllegalStateException e) {
            faults.add(
                    "its id \"" + text + "\" is not an expression: " + e.getMessage(),
                    "Write id as an expression over the parameters, such as \"#message.id\".");
            return null;
        }
        String @Nullable [] names = NAMES.getParameterNames(method);
        String unknown = unknownVariable(parsed.getAST(), method.getParameterCount(), names);
        if (unknown != null) {
            faults.add(
                    "its id \"" + text + "\" has #" + unknown + ", and "
                            + (names == null
                                    ? "the class has no parameter names"
                                    : names.length == 0
                                            ? "the method has no parameters"
                                            : "the parameters are " + joined(names)),
                    names == null
                            ? "Compile with -parameters, as Spring Boot's plugins do, or use #p0 for the first parameter."
                            : "Correct the names in id.");
            return null;
        }
        return new IdExpression(text, faults.where(), method, parsed, beans);
    }

    private static String joined(String[] names) {
        return Arrays.stream(names).map(name -> "#" + name).collect(Collectors.joining(", "));
    }

    private static @Nullable String unknownVariable(SpelNode node, int parameters, String @Nullable [] names) {
        if (node instanceof VariableReference) {
            String name = node.toStringAST().substring(1);
            if (!isParameter(name, parameters, names) && !name.equals("root") && !name.equals("this")) {
                return name;
            }
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            String unknown = unknownVariable(node.getChild(i), parameters, names);
            if (unknown != null) {
                return unknown;
            }
        }
        return null;
    }

    private static boolean isParameter(String name, int parameters, String @Nullable [] names) {
        return (names != null && List.of(names).contains(name))
                || (name.matches("[ap]\\d{1,3}") && Integer.parseInt(name.substring(1)) < parameters);
    }

    /**
     * Evaluates the expression.
     *
     * @throws NoIdempotenceIdException if the result is not an ID
     */
    IdempotenceId evaluate(Object target, @Nullable Object[] arguments) {
        MethodBasedEvaluationContext context = new MethodBasedEvaluationContext(target, method, arguments, NAMES);
        context.setBeanResolver(beans);
        Object value;
        try {
            value = expression.getValue(context);
        } catch (EvaluationException e) {
            throw noId("cannot be evaluated: " + e.getMessage(), e);
        }
        try {
            return value instanceof List<?> values ? ofAll(values) : new IdempotenceId(text(value));
        } catch (IllegalArgumentException e) {
            throw noId("is not an idempotence ID: " + e.getMessage(), e);
        }
    }

    private IdempotenceId ofAll(List<?> values) {
        BusinessFields fields = IdempotenceIdGenerator.fromFields("method");
        for (int i = 0; i < values.size(); i++) {
            fields = fields.with(String.valueOf(i), text(values.get(i)));
        }
        return fields.generateId();
    }

    /** The text of a value whose text is the same in every process. */
    private String text(@Nullable Object value) {
        if (value instanceof CharSequence
                || value instanceof Number
                || value instanceof UUID
                || value instanceof Enum<?>
                || value instanceof IdempotenceId) {
            String characters = value instanceof Enum<?> constant ? constant.name() : value.toString();
            if (characters.isBlank()) {
                throw noId("is blank", null);
            }
            return characters;
        }
        if (value == null) {
            throw noId("is null", null);
        }
        throw noId("is a " + value.getClass().getName() + "; expected text, a number, a UUID or an enum", null);
    }

    private NoIdempotenceIdException noId(String what, @Nullable Throwable cause) {
        return new NoIdempotenceIdException(
                "the ID of a call of " + where + ", \"" + text + "\", " + what + "; the method did not run",
                text,
                cause);
    }

    @Override
    public String toString() {
        return text;
    }
}
