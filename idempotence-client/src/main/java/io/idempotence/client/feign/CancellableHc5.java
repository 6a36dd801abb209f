package io.idempotence.client.feign;

import feign.Client;
import io.idempotence.client.internal.http.ApacheRequests;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.internal.ThreadBound;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A copy of Feign's client for Apache HttpClient 5 whose requests can be cancelled, and which reports that HttpClient sent a request again.
 * HttpClient passes its connection only to requests that are a {@code CancellableDependency}, and Feign's are not. It uses reflection,
 * because this module does not depend on HttpClient.
 */
final class CancellableHc5 {
    private static final String HTTP_CLIENT = "org.apache.hc.client5.http.classic.HttpClient";
    private static final String REQUEST = "org.apache.hc.core5.http.ClassicHttpRequest";
    private static final String CONTEXT = "org.apache.hc.core5.http.protocol.HttpCoreContext";
    private static final String CANCELLABLE_DEPENDENCY = "org.apache.hc.core5.concurrent.CancellableDependency";

    private CancellableHc5() {}

    static Client like(Client client, ThreadBound<Watch> sending) throws ReflectiveOperationException {
        Object delegate = FeignInternals.field(client, client.getClass(), "client");
        if (delegate == null) {
            throw new NoSuchFieldException("client is null");
        }
        ClassLoader loader = client.getClass().getClassLoader();
        Class<?> httpClient = Class.forName(HTTP_CLIENT, false, loader);
        Class<?> request = Class.forName(REQUEST, false, loader);
        Class<?> dependency = Class.forName(CANCELLABLE_DEPENDENCY, false, loader);
        ApacheRequests requests = new ApacheRequests(loader);
        Class<?> context = Class.forName(CONTEXT, false, loader);
        Method getResponse = context.getMethod("getResponse");
        InvocationHandler handler = (proxy, method, args) -> {
            Watch watch = sending.get();
            for (int i = 0; watch != null && args != null && i < args.length; i++) {
                if (request.isInstance(args[i])) {
                    CancellableRequest cancellable = new CancellableRequest(args[i], requests.exit());
                    watch.exit(cancellable::cancel);
                    args[i] = Proxy.newProxyInstance(loader, new Class<?>[] {request, dependency}, cancellable);
                }
            }
            try {
                return invoke(method, delegate, args);
            } catch (Throwable e) {
                if (watch != null && args != null && hadResponse(args, context, getResponse)) {
                    watch.evidence().sent();
                }
                throw e;
            }
        };
        Object copy = Proxy.newProxyInstance(loader, interfacesOf(delegate), handler);
        return (Client) client.getClass().getConstructor(httpClient).newInstance(copy);
    }

    /** Whether the request got a response before it failed: HttpClient sends it again after a 429 or 503, and also a POST. */
    private static boolean hadResponse(@Nullable Object[] args, Class<?> context, Method getResponse) {
        try {
            for (Object arg : args) {
                if (context.isInstance(arg) && getResponse.invoke(arg) != null) {
                    return true;
                }
            }
            return false;
        } catch (ReflectiveOperationException e) {
            return true;
        }
    }

    private static Class<?>[] interfacesOf(Object object) {
        Set<Class<?>> interfaces = new LinkedHashSet<>();
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            interfaces.addAll(Set.of(type.getInterfaces()));
        }
        return interfaces.toArray(new Class<?>[0]);
    }

    private static @Nullable Object invoke(Method method, Object target, @Nullable Object @Nullable [] args)
            throws Throwable {
        try {
            return method.invoke(target, args);
        } catch (InvocationTargetException e) {
            throw e.getCause() == null ? e : e.getCause();
        }
    }

    /** A request that can be cancelled, together with the connection that it is sent over. */
    private static final class CancellableRequest implements InvocationHandler {
        private final Object request;
        private final ApacheRequests.Exit exit;
        private volatile @Nullable Object dependency;
        private volatile boolean cancelled;

        CancellableRequest(Object request, ApacheRequests.Exit exit) {
            this.request = request;
            this.exit = exit;
        }

        @Override
        public @Nullable Object invoke(Object proxy, Method method, @Nullable Object @Nullable [] args)
                throws Throwable {
            switch (method.getName()) {
                case "setDependency":
                    dependency = args == null ? null : args[0];
                    return null;
                case "isCancelled":
                    return cancelled;
                case "cancel":
                    cancel();
                    return true;
                default:
                    return CancellableHc5.invoke(method, request, args);
            }
        }

        void cancel() {
            cancelled = true;
            exit.cancel(dependency);
        }
    }
}
