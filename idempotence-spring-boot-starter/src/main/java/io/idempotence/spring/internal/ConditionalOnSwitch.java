package io.idempotence.spring.internal;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.springframework.context.annotation.Conditional;

/** The condition that a property switches a part on, or off. The start fails if its value cannot be read. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@Conditional(OnSwitch.class)
public @interface ConditionalOnSwitch {
    /** The full name of the property. */
    String value();

    /** Whether the part is on without the property. */
    boolean byDefault() default true;

    /** Whether the part must be on, or off. */
    boolean on() default true;
}
