package io.idempotence.spring.internal;

import org.springframework.boot.autoconfigure.condition.ConditionMessage;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** The condition of {@link ConditionalOnSwitch}. */
final class OnSwitch extends SpringBootCondition {
    @Override
    public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
        MergedAnnotation<ConditionalOnSwitch> wanted = metadata.getAnnotations().get(ConditionalOnSwitch.class);
        String property = wanted.getString("value");
        boolean isOn = Switches.isOn(context.getEnvironment(), property, wanted.getBoolean("byDefault"));
        return new ConditionOutcome(
                isOn == wanted.getBoolean("on"),
                ConditionMessage.forCondition(property).because(isOn ? "it is on" : "it is off"));
    }
}
