package io.idempotence.client.feign;

import feign.InvocationHandlerFactory;
import feign.Target;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** The factory of invocation handlers. It puts the opening of calls above another factory's handler, and the retry loop below it. */
final class IdempotentInvocationHandlerFactory implements InvocationHandlerFactory {
    private final InvocationHandlerFactory delegate;
    private final Installation installation;

    IdempotentInvocationHandlerFactory(InvocationHandlerFactory delegate, Installation installation) {
        this.delegate = delegate;
        this.installation = installation;
    }

    @Override
    @SuppressWarnings("rawtypes") // Feign's signature
    public InvocationHandler create(Target target, Map<Method, MethodHandler> dispatch) {
        Map<Method, MethodHandler> wrapped = new LinkedHashMap<>();
        Map<Method, ClientMethod> opening = new HashMap<>();
        dispatch.forEach((method, handler) -> {
            if (method.isDefault()) {
                wrapped.put(method, handler);
            } else {
                ClientMethod own = new ClientMethod(
                        target,
                        method,
                        installation.config(),
                        installation.feign().declared(target.type(), method),
                        installation.feign().returnsFuture(target.type(), method),
                        installation.feign().isInterceptedBefore());
                opening.put(method, own);
                wrapped.put(method, new RetryingMethodHandler(handler, own, installation));
            }
        });
        return new IdempotentInvocationHandler(
                delegate.create(target, wrapped), target.type(), opening, installation.calls());
    }
}
