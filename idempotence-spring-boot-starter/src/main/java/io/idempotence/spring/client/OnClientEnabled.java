package io.idempotence.spring.client;

import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** The condition that {@code idempotence.client.enabled} is not false, or that a client is enabled by settings of its own. */
final class OnClientEnabled extends SpringBootCondition {
    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ConditionMessage.Builder message = ConditionMessage.forCondition("idempotence.client.enabled");
        boolean all = !"false".equalsIgnoreCase(context.getEnvironment().getProperty("idempotence.client.enabled"));
        if (all) {
            return ConditionOutcome.match(message.because("clients are enabled"));
        }
        return context.getEnvironment() instanceof ConfigurableEnvironment environment
                        && EnvironmentSettings.enableOneClient(environment)
                ? ConditionOutcome.match(message.because("some clients are enabled"))
                : ConditionOutcome.noMatch(message.because("no client is enabled"));
    }
}
