package io.idempotence.client.feign;

import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.Target;
import io.idempotence.client.internal.Observation;
import java.lang.reflect.Method;

/** Writes the call's ID on each of its requests. */
final class IdempotenceRequestInterceptor implements RequestInterceptor {
    private final Installation installation;

    IdempotenceRequestInterceptor(Installation installation) {
        this.installation = installation;
    }

    @Override
    public void apply(RequestTemplate template) {
        FeignAttempt attempt = installation.current();
        if (attempt == null) {
            installation.foundNoCall();
            attempt = orphan(template);
        }
        attempt.call().prepare(template, attempt.number());
        attempt.prepared();
        installation.remember(template, attempt);
    }

    /** A call of one request: an ID is better than none, though no retry of ours keeps it. */
    private FeignAttempt orphan(RequestTemplate template) {
        Target<?> target = template.feignTarget();
        Method method = template.methodMetadata().method();
        ClientMethod stranger = new ClientMethod(new FeignTarget(target, installation.config()), method);
        return new FeignAttempt(new FeignCall(stranger), 1, new Observation());
    }
}
