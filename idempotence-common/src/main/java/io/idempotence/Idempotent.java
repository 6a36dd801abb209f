package io.idempotence;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * A mark on an operation that must take effect once for each idempotence ID. It goes on a method or on the type that declares it; the
 * method's own annotation replaces the type's.
 *
 * <ul>
 *   <li><b>On a client method</b>, for example of a Feign interface: its calls carry an ID, or must not, whatever their HTTP method.
 *       Without it, POST and PATCH carry an ID, PUT and DELETE do not. GET, HEAD, OPTIONS and TRACE never do. On an interface, it also
 *       applies to inherited methods, unless the interface that declares them has its own. The client reads only {@link #value()}.
 *   <li><b>On a handler of a Spring MVC controller</b> or on an interface that the controller implements: its requests must carry an ID.
 *       Needs the Spring Boot starter.
 *   <li><b>On a method of another Spring bean</b>, with an {@link #id()}: the method runs once for each ID, and later calls return the first
 *       result. Needs the Spring Boot starter.
 * </ul>
 *
 * <p>An attribute that is not set is as configured for all operations. Durations are text with a unit, such as {@code 500ms}, {@code 30s},
 * {@code 24h} or {@code 7d}, and may contain placeholders such as {@code ${orders.retention}}. Where an attribute is an array of a single
 * value, write the value without braces: {@code failureRule = FailureRule.STORE_EVERYTHING}.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface Idempotent {
    /**
     * True: the operation is idempotent. False: it is not. A client then sends no ID, and its calls behave as without this library, so
     * Feign's {@code Retryer} may send one again that was executed. A handler runs for every request.
     *
     * @return whether the operation is idempotent; true by default
     */
    boolean value() default true;

    /**
     * The ID of a call of a bean method, as an expression of the Spring Expression Language over the parameters: {@code #message.id}.
     * Several values, none of them null, are a list: <code>{#tenant, #message.id}</code>. Not for handlers, whose requests carry the ID.
     */
    String id() default "";

    /**
     * The operation of a bean method: equal IDs of different operations are different IDs. Set it before you rename the method or its class,
     * because records of another operation are not found. Not for handlers.
     *
     * @return the operation's name; empty for the names of class and method
     */
    String operation() default "";

    /**
     * Whether a request must carry an ID. If not, a request without one runs unprotected. For handlers only.
     *
     * @return whether an ID is required; true by default
     */
    boolean required() default true;

    /** {@return how long an ID is remembered; empty for the configured duration} */
    String retention() default "";

    /**
     * How long a claim holds if its owner dies. It is renewed while the operation runs.
     *
     * @return the duration; empty for the configured one
     */
    String lease() default "";

    /** {@return which failures keep the ID: at most one rule, none for the configured one} */
    FailureRule[] failureRule() default {};

    /**
     * Exceptions after which the ID is kept. A later request gets the same response, a later call of a bean method is refused as
     * result-unavailable. Subclasses are included, and the nearest class counts. An exception of a handler counts even if Spring MVC renders
     * it as a response, whatever the status.
     *
     * @return exception classes
     */
    Class<? extends Throwable>[] keepOn() default {};

    /**
     * Exceptions after which the ID is released: the next attempt runs. Which exceptions count is as for {@link #keepOn}.
     *
     * @return exception classes
     */
    Class<? extends Throwable>[] releaseOn() default {};

    /**
     * {@return the treatment of an ID whose execution was abandoned, for example because its process died: at most one choice, none for the
     * configured one}
     */
    OnAbandoned[] onAbandoned() default {};

    /**
     * The longest time a duplicate waits while the first attempt runs. A request waits only if its caller sends {@code Prefer: wait}, a call
     * of a bean method always.
     *
     * @return the duration; empty for the configured one
     */
    String maxWait() default "";
}
