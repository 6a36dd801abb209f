package io.idempotence.spring.server;

import static io.idempotence.spring.server.ServerBuilder.checked;
import static io.idempotence.spring.server.ServerBuilder.set;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.BodyComparison;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.servlet.RequestScope;
import io.idempotence.spring.internal.UsualPolicy;
import io.idempotence.spring.server.IdempotenceServerProperties.Comparison;
import io.idempotence.spring.server.IdempotenceServerProperties.Header;
import io.idempotence.spring.server.IdempotenceServerProperties.Scope;
import org.springframework.util.unit.DataSize;

/** The settings of the filter, from properties. Apart from {@link ServerBuilder}, because not every application has servlets. */
record FilterBuilder(IdempotenceServerProperties properties, ContainerFormLimits container) {
    /** Spring MVC sets these behind the filter. Without them, a browser hides a replay from a page of another origin. */
    private static final String[] OF_CORS = {
        "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers"
    };

    /** Returns a builder with these settings. */
    IdempotenceFilterBuilder of(Idempotence idempotence) {
        IdempotenceFilterBuilder filter = IdempotenceFilter.builder(idempotence).policy(UsualPolicy.of(idempotence));
        if (!properties.requireId()) {
            filter.idOptional();
        }
        filter.scope(checked("scope-headers", properties.scopeHeaders(), this::scope));
        filter.keepHeaders(OF_CORS);
        set("methods", properties.methods(), methods -> filter.methods(methods.toArray(String[]::new)));
        set("body-comparison", properties.bodyComparison(), by -> filter.bodyComparison(bodyComparison(by)));
        set("header.min-length", properties.header().minLength(), FilterBuilder::checkMinLength);
        set("header.max-length", properties.header().maxLength(), any -> filter.header(header(properties.header())));
        set("max-request-body", properties.maxRequestBody(), size -> filter.maxRequestBody(bytes(size)));
        set("max-response-body", properties.maxResponseBody(), size -> filter.maxResponseBody(bytes(size)));
        set("max-memory", properties.maxMemory(), size -> filter.maxMemory(size.toBytes()));
        if (container.parameters() != null) {
            filter.maxFormParameters(container.parameters());
        }
        if (container.bytes() != null) {
            filter.maxFormSize(container.bytes());
        }
        set("max-form-parameters", properties.maxFormParameters(), filter::maxFormParameters);
        set("max-form-size", properties.maxFormSize(), size -> filter.maxFormSize(bytes(size)));
        set("max-wait", properties.maxWait(), filter::maxWait);
        set("keep-headers", properties.keepHeaders(), names -> filter.keepHeaders(names.toArray(String[]::new)));
        set("problem-base", properties.problemBase(), filter::problemBase);
        return filter;
    }

    private RequestScope scope() {
        RequestScope scope = properties.scope() == Scope.PRINCIPAL ? RequestScope.principal() : request -> "";
        for (String header : properties.scopeHeaders()) {
            scope = RequestScope.header(header).and(scope);
        }
        return scope;
    }

    private static BodyComparison bodyComparison(Comparison comparison) {
        try {
            return comparison == Comparison.BYTES ? BodyComparison.bytes() : BodyComparison.canonicalJson();
        } catch (IllegalStateException e) {
            // Gson is missing.
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /** With the largest maximum, so that a fault is this value's. */
    private static void checkMinLength(int min) {
        IdempotencyKeyHeader.standard().length(min, IdempotenceId.MAX_LENGTH);
    }

    private static IdempotencyKeyHeader header(Header form) {
        IdempotencyKeyHeader header = IdempotencyKeyHeader.standard().length(form.minLength(), form.maxLength());
        header = form.strict() ? header.strict() : header;
        return form.acceptSpace() ? header.acceptSpace() : header;
    }

    private static int bytes(DataSize size) {
        return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, size.toBytes()));
    }
}
