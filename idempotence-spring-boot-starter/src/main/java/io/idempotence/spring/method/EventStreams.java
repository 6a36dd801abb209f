package io.idempotence.spring.method;

import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.ResolvableType;
import org.springframework.http.MediaType;
import org.springframework.http.codec.ServerSentEvent;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;

/**
 * The check for handlers that respond with a stream of events, as far as their return type and media types show it. A reactive type alone
 * does not, nor does a stream among several types: Spring MVC collects the values, unless they are texts or the caller asks for a stream.
 */
final class EventStreams {
    /** More than any wrapper of a body needs. The type arguments of a type variable may contain it again. */
    private static final int MOST_NESTED = 8;

    private EventStreams() {}

    static void check(RequestMappingInfo mapping, HandlerMethod handler, OperationFaults faults) {
        ResolvableType type = ResolvableType.forMethodReturnType(handler.getMethod(), handler.getBeanType());
        Set<MediaType> produced = mapping.getProducesCondition().getProducibleMediaTypes();
        boolean producesStream = !produced.isEmpty() && produced.stream().allMatch(EventStreams::isStream);
        if (isStream(type, producesStream, MOST_NESTED)) {
            faults.add(
                    "it returns " + withoutPackages(type) + ", and a stream of events cannot be stored and replayed",
                    "Return the result as a whole, or remove @Idempotent.");
        }
    }

    /** @param producesStream whether the values of a reactive type are sent one by one, whatever they are */
    private static boolean isStream(ResolvableType type, boolean producesStream, int nested) {
        Class<?> resolved = type.resolve(Object.class);
        if (ResponseBodyEmitter.class.isAssignableFrom(resolved)) {
            return true;
        }
        if (isReactive(resolved)
                && (producesStream
                        || ServerSentEvent.class.isAssignableFrom(
                                type.getGeneric(0).resolve(Object.class)))) {
            return true;
        }
        if (nested > 0) {
            for (ResolvableType argument : type.getGenerics()) {
                if (isStream(argument, producesStream, nested - 1)) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Whether a type has many values, such as {@code Flux} or {@code Publisher}. */
    private static boolean isReactive(Class<?> type) {
        @Nullable
        ReactiveAdapter adapter = ReactiveAdapterRegistry.getSharedInstance().getAdapter(type);
        return adapter != null && adapter.isMultiValue();
    }

    /** Those that Spring MVC streams. */
    private static boolean isStream(MediaType type) {
        return MediaType.TEXT_EVENT_STREAM.includes(type)
                || type.getSubtype().equals("x-ndjson")
                || type.getSubtype().endsWith("+x-ndjson")
                || type.getSubtype().equals("stream+json");
    }

    private static String withoutPackages(ResolvableType type) {
        return type.toString().replaceAll("\\b[a-z]\\w*\\.", "");
    }
}
