package io.idempotence.client.feign;

import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.internal.call.LayerFailures;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.internal.Causes;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The handler that opens a logical call for each call of the application, and registers it under the array of its arguments. */
final class IdempotentInvocationHandler implements InvocationHandler {
    private final InvocationHandler delegate;
    private final CallLookup calls;
    private final Class<?> type;
    private final Map<Method, ClientMethod> opening;

    IdempotentInvocationHandler(
            InvocationHandler delegate, Class<?> type, Map<Method, ClientMethod> opening, CallLookup calls) {
        this.delegate = delegate;
        this.type = type;
        this.opening = opening;
        this.calls = calls;
    }

    @Override
    public @Nullable Object invoke(Object proxy, Method method, @Nullable Object @Nullable [] args) throws Throwable {
        ClientMethod own = opening.get(method);
        if (own == null) {
            if (isEquals(method) && args != null) {
                return equalProxies(proxy, method, args[0]);
            }
            return method.isDefault()
                    ? LayerFailures.<@Nullable Object, Throwable>duringDefaultMethod(
                            () -> delegate.invoke(proxy, method, args))
                    : delegate.invoke(proxy, method, args);
        }
        Object[] key = args == null ? new Object[0] : args;
        FeignCall call = new FeignCall(own);
        UnaryOperator<Throwable> end = thrown -> thrown instanceof Exception e ? endOf(call, e) : thrown;
        if (!LayerFailures.begins(end)) {
            call.logical().giveUp();
        }
        boolean goesOn = false;
        boolean layered = false;
        call.logical().enter();
        try {
            Object value = calls.whileOpen(
                    call,
                    own,
                    key,
                    () -> CallScope.<@Nullable Object, Throwable>outside(
                            () -> LayerFailures.during(end, () -> delegate.invoke(proxy, method, key))));
            goesOn = own.returnsFuture() || value instanceof Future || value instanceof CompletionStage;
            if (!goesOn) {
                LayerFailures.ended(end, call.carriesId());
            }
            if (value instanceof CompletableFuture<?> future && call.isOfALayer(future)) {
                layered = true;
                return endsAsTheCall(future, call);
            }
            return value;
        } catch (Exception e) {
            Throwable thrown = endOf(call, e);
            if (Causes.of(thrown).noneMatch(OutcomeUnknown.class::isInstance)) {
                LayerFailures.ended(end, false);
            }
            throw thrown;
        } finally {
            if (!goesOn) {
                call.logical().giveUp();
            }
            if (!layered) {
                call.logical().exit();
            }
            if (call.isOver()) {
                calls.forget(key);
            }
        }
    }

    /**
     * Returns the exception with which the call ends, and gives the call up. A handler below, such as a circuit breaker, may prevent the
     * first run of the retry loop, or a further one. The handler's exception then settles neither earlier runs nor an earlier call in
     * doubt.
     */
    private Throwable endOf(FeignCall call, Exception thrown) {
        call.logical().giveUp();
        boolean notMade = call.logical().attempts() == 0;
        if (notMade) {
            call.notMade();
        }
        boolean refusal = LayerFailures.containsRefusal(thrown);
        if (!call.logical().isHiddenBy(thrown, refusal)) {
            return notMade || refusal ? call.logical().orHandlerFailure(thrown) : thrown;
        }
        Throwable unknown = call.unknown(new Observation(), thrown);
        call.logical().ended(Result.UNKNOWN, unknown);
        return unknown;
    }

    /**
     * Returns a future that ends with the call. A layer that runs the call again later reports its refusals through its own future. The
     * call therefore lasts until that future ends, and it is the future, not the proxy, that leaves the call.
     */
    private CompletableFuture<@Nullable Object> endsAsTheCall(CompletableFuture<?> layered, FeignCall call) {
        CompletableFuture<@Nullable Object> end = new CompletableFuture<>();
        layered.whenComplete((value, thrown) -> {
            call.logical().giveUp();
            Throwable failure = thrown == null ? null : endOfStage(call, thrown);
            call.logical().exit();
            if (failure == null) {
                end.complete(value);
            } else {
                end.completeExceptionally(failure);
            }
        });
        end.whenComplete((value, thrown) -> layered.cancel(true));
        return end;
    }

    private Throwable endOfStage(FeignCall call, Throwable thrown) {
        Throwable cause =
                thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        try {
            return cause instanceof Exception e ? endOf(call, e) : cause;
        } catch (RuntimeException e) {
            // In this thread the exception would be lost, and the future would not end.
            return e;
        }
    }

    private static boolean isEquals(Method method) {
        return method.getName().equals("equals")
                && method.getParameterCount() == 1
                && method.getParameterTypes()[0] == Object.class;
    }

    /** Handlers below compare the other proxy's handler with themselves, so the other proxy is rebuilt with its inner handler. */
    private @Nullable Object equalProxies(Object proxy, Method method, @Nullable Object other) throws Throwable {
        if (other == null
                || !Proxy.isProxyClass(other.getClass())
                || !(Proxy.getInvocationHandler(other) instanceof IdempotentInvocationHandler that)) {
            return false;
        }
        Object bare = Proxy.newProxyInstance(that.type.getClassLoader(), new Class<?>[] {that.type}, that.delegate);
        return delegate.invoke(proxy, method, new Object[] {bare});
    }
}
