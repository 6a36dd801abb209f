package io.idempotence.spring.server;

import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.BodyForm;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.servlet.RequestScope;
import io.idempotence.spring.server.IdempotenceServerProperties.Comparison;
import io.idempotence.spring.server.IdempotenceServerProperties.Header;
import io.idempotence.spring.server.IdempotenceServerProperties.Scope;
import io.idempotence.spring.server.ServerBuilder.Given;
import org.springframework.util.unit.DataSize;

/** The settings of the filter, from properties. Apart from {@link ServerBuilder}, because not every application has servlets. */
record FilterBuilder(IdempotenceServerProperties properties) {
    /** Returns a builder with these settings. */
    IdempotenceFilterBuilder of(Idempotence idempotence) {
        IdempotenceFilterBuilder filter = IdempotenceFilter.builder(idempotence);
        if (!properties.requireId()) {
            filter.keyOptional();
        }
        filter.scope(scope());
        Given given = new Given();
        try {
            filter.methods(given.value("methods", properties.methods()).toArray(String[]::new))
                    .bodyForm(bodyForm(given.value("body-form", properties.bodyForm())))
                    .header(header(given))
                    .maxRequestBody(bytes(given.value("max-request-body", properties.maxRequestBody())))
                    .maxResponseBody(bytes(given.value("max-response-body", properties.maxResponseBody())))
                    .maxWait(given.value("max-wait", properties.maxWait()))
                    .keepHeaders(given.value("keep-headers", properties.keepHeaders())
                            .toArray(String[]::new))
                    .problemBase(given.value("problem-base", properties.problemBase()));
            if (properties.maxMemory() != null) {
                filter.maxMemory(
                        given.value("max-memory", properties.maxMemory()).toBytes());
            }
            if (properties.maxFormParameters() != null) {
                filter.maxFormParameters(given.value("max-form-parameters", properties.maxFormParameters()));
            }
            if (properties.maxFormSize() != null) {
                filter.maxFormSize(bytes(given.value("max-form-size", properties.maxFormSize())));
            }
        } catch (IllegalArgumentException e) {
            throw given.refused(e);
        }
        return filter;
    }

    private RequestScope scope() {
        RequestScope scope = properties.scope() == Scope.PRINCIPAL ? RequestScope.principal() : request -> "";
        for (String header : properties.scopeHeaders()) {
            scope = RequestScope.header(header).and(scope);
        }
        return scope;
    }

    private static BodyForm bodyForm(Comparison comparison) {
        try {
            return comparison == Comparison.BYTES ? BodyForm.bytes() : BodyForm.canonicalJson();
        } catch (IllegalStateException e) {
            // Gson is missing.
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private IdempotencyKeyHeader header(Given given) {
        Header form = properties.header();
        IdempotencyKeyHeader header = IdempotencyKeyHeader.standard()
                .length(form.minLength(), given.value("header.max-length", form.maxLength()));
        header = form.strict() ? header.strict() : header;
        return form.acceptSpace() ? header.acceptSpace() : header;
    }

    private static int bytes(DataSize size) {
        return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, size.toBytes()));
    }
}
