package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfigException;
import io.idempotence.spring.internal.SpringDurations;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** The analysis of a setting of the client half that is unknown or malformed, or contradicts another. */
final class ClientConfigFailureAnalyzer extends AbstractFailureAnalyzer<IdempotenceClientConfigException> {
    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, IdempotenceClientConfigException cause) {
        return new FailureAnalysis(
                "A setting of the idempotence client is wrong.\n\n    "
                        + SpringDurations.within(String.valueOf(cause.getMessage())),
                "Correct or remove " + cause.key() + " in " + cause.source()
                        + ". Settings of one client are written idempotence.client.clients.<name>.<key>, where the name is that of"
                        + " @FeignClient, the HTTP service group, or the host.",
                cause);
    }
}
