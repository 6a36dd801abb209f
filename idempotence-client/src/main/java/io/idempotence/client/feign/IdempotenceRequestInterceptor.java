package io.idempotence.client.feign;

import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.Target;
import java.lang.reflect.Method;

/** Writes the call's ID on each of its requests. */
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

    /** A call of one request: an ID is better than none, though no retry of ours keeps it. */
    private FeignCall orphan(RequestTemplate template) {
        Target<?> target = template.feignTarget();
        Method method = template.methodMetadata().method();
        return new FeignCall(new ClientMethod(target, method, installation.config(), null, false, true));
    }
}
