package io.idempotence.client.feign;

import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.Target;
import java.lang.reflect.Method;

/** The interceptor that writes the call's ID on each of its requests. */
final class IdempotenceRequestInterceptor implements RequestInterceptor {
    private final Installation installation;

    IdempotenceRequestInterceptor(Installation installation) {
        this.installation = installation;
    }

    @Override
    public void apply(RequestTemplate template) {
        FeignAttempt attempt = installation.calls().attemptOf(template);
        if (attempt == null) {
            installation.warnings().requestIsOutsideOfACall();
            orphan(template).prepare(template);
            return;
        }
        attempt.prepare(template);
        installation.calls().remember(template, attempt);
    }

    /** Creates a call of one request. It has an ID, although no retry keeps it. */
    private FeignCall orphan(RequestTemplate template) {
        Target<?> target = template.feignTarget();
        Method method = template.methodMetadata().method();
        return new FeignCall(new ClientMethod(target, method, installation.config(), null, false, true));
    }
}
