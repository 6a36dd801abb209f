package io.idempotence;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Says whether calls of a client method carry an idempotence ID, whatever their HTTP method.
 *
 * <p>On a method or on the interface that declares it; the method's own annotation wins. Without it POST and PATCH carry an
 * ID, PUT and DELETE do not, GET, HEAD, OPTIONS and TRACE never do.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface Idempotent {
    /**
     * True: the call carries an ID and may be retried. False: it carries none, and is retried only when it was certainly not
     * sent.
     *
     * @return whether the call carries an ID; true by default
     */
    boolean value() default true;
}
