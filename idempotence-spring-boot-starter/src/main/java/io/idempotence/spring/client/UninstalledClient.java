package io.idempotence.spring.client;

import io.idempotence.http.IdempotenceHeaders;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.http.HttpMethod;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.service.annotation.HttpExchange;

/** The warning that requests of an HTTP service client pass no {@link RestInterceptor}, once for each client. Thread-safe. */
final class UninstalledClient {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentRestClient.class);

    /** The origin of a URL without placeholders in it. What follows may be a template, which no URI is. */
    private static final Pattern ORIGIN = Pattern.compile("https?://[\\w.-]+(?::[0-9]+)?(?=[/?]|$)");

    private final ObjectProvider<RestClientInstaller> installer;
    private final AtomicBoolean warned = new AtomicBoolean();

    UninstalledClient(ObjectProvider<RestClientInstaller> installer) {
        this.installer = installer;
    }

    /**
     * Called after a request that passed no interceptor.
     *
     * @param annotated the value of {@code @Idempotent}, or null if there is none
     */
    void sent(MethodInvocation invocation, @Nullable Boolean annotated) {
        if (warned.get() || givesAnId(invocation.getMethod())) {
            return;
        }
        Method method = invocation.getMethod();
        HttpExchange ofMethod = AnnotatedElementUtils.findMergedAnnotation(method, HttpExchange.class);
        HttpExchange ofType =
                AnnotatedElementUtils.findMergedAnnotation(method.getDeclaringClass(), HttpExchange.class);
        List<HttpExchange> annotations =
                Stream.of(ofMethod, ofType).filter(Objects::nonNull).toList();
        String httpMethod = ofMethod == null ? null : httpMethod(annotations, invocation.getArguments());
        if (httpMethod != null
                && installer.getObject().expectsId(host(annotations), method.getName(), annotated, httpMethod)
                && warned.compareAndSet(false, true)) {
            String type = method.getDeclaringClass().getSimpleName();
            LOG.warn(
                    "The HTTP service client {} has no client half: {}.{} was sent without an idempotence ID, and is not retried."
                            + " Its RestClient or RestTemplate was built without the starter. Inject RestClient.Builder instead of"
                            + " calling RestClient.builder(), or call IdempotentRestClient.install(builder, config). If its provider"
                            + " ignores IDs, write @Idempotent(false) on {}",
                    type,
                    type,
                    method.getName(),
                    type);
        }
    }

    private static boolean givesAnId(Method method) {
        return Arrays.stream(method.getParameters())
                .map(parameter -> AnnotatedElementUtils.findMergedAnnotation(parameter, RequestHeader.class))
                .anyMatch(
                        header -> header != null && IdempotenceHeaders.IDEMPOTENCY_KEY.equalsIgnoreCase(header.name()));
    }

    private static @Nullable String httpMethod(List<HttpExchange> annotations, @Nullable Object[] arguments) {
        Stream<String> given = Arrays.stream(arguments)
                .filter(HttpMethod.class::isInstance)
                .map(argument -> ((HttpMethod) argument).name());
        return Stream.concat(given, annotations.stream().map(HttpExchange::method))
                .filter(method -> !method.isEmpty())
                .findFirst()
                .orElse(null);
    }

    /** The client's name in settings if the annotations contain it; else an empty one, which has the settings of all clients. */
    private static String host(List<HttpExchange> annotations) {
        for (HttpExchange annotation : annotations) {
            Matcher origin = ORIGIN.matcher(annotation.url());
            if (origin.lookingAt()) {
                return RestInterceptor.authority(URI.create(origin.group()));
            }
        }
        return "";
    }
}
