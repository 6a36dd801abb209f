package io.idempotence;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A mark on a client method whose calls carry an idempotence ID, or must not, whatever their HTTP method.
 *
 * <p>It goes on a method or on the interface that declares it; the method's own annotation overrides the interface's. Without it, POST and
 * PATCH carry an ID, PUT and DELETE do not. GET, HEAD, OPTIONS and TRACE never do.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface Idempotent {
    /**
     * True: the call carries an ID and may be retried. False: it carries none, and is retried only if it was certainly not sent.
     *
     * @return whether the call carries an ID; true by default
     */
    boolean value() default true;
}
