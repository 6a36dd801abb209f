package io.idempotence.it.client;

import feign.Headers;
import feign.Param;
import feign.RequestLine;
import feign.Response;
import io.idempotence.Idempotent;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** The calls of {@link Orders}, with futures as their results. */
interface AsyncOrders {
    @RequestLine("POST /orders")
    CompletableFuture<String> create(String body);

    @RequestLine("PATCH /orders/1")
    CompletableFuture<String> change(String body);

    @RequestLine("POST /orders")
    @Headers("Idempotency-Key: {id}")
    CompletableFuture<String> createAs(@Param("id") String id, String body);

    @RequestLine("POST /tick")
    CompletionStage<String> tick();

    @RequestLine("POST /orders")
    CompletableFuture<Response> raw(String body);

    @RequestLine("POST /orders")
    @Headers({"Idempotent-Replayed: true", "Idempotency-Refusal: outcome-unknown", "Retry-After: 3600"})
    CompletableFuture<String> createWithHeadersOfAResponse(String body);

    @RequestLine("PUT /orders/1")
    CompletableFuture<String> put(String body);

    @Idempotent
    @RequestLine("PUT /orders/1")
    CompletableFuture<String> protectedPut(String body);

    @RequestLine("DELETE /orders/1")
    CompletableFuture<String> delete();

    @Idempotent
    @RequestLine("DELETE /orders/1")
    CompletableFuture<String> protectedDelete();

    @Idempotent(false)
    @RequestLine("POST /orders")
    CompletableFuture<String> unprotected(String body);

    @Idempotent(false)
    @RequestLine("POST /orders")
    @Headers("Idempotency-Key: {id}")
    CompletableFuture<String> unprotectedAs(@Param("id") String id, String body);

    @Idempotent
    @RequestLine("GET /orders")
    CompletableFuture<String> list();

    @Idempotent
    @RequestLine("GET /orders")
    @Headers("Idempotency-Key: {id}")
    CompletableFuture<String> listAs(@Param("id") String id);

    @RequestLine("POST /numbers")
    CompletableFuture<Map<String, Integer>> number(String body);

    default CompletableFuture<String> twice() {
        return create("a").thenCompose(first -> create("b").thenApply(second -> first + second));
    }

    /** Waits for each response, and cancels the call if the thread is interrupted. */
    static Orders waitingFor(AsyncOrders orders) {
        return (Orders) Proxy.newProxyInstance(
                Orders.class.getClassLoader(), new Class<?>[] {Orders.class}, new Waiting(orders));
    }

    /** The handler of {@link #waitingFor}. */
    record Waiting(AsyncOrders orders) implements InvocationHandler {
        @Override
        public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
            if (method.getName().equals("equals")) {
                return args[0] != null
                        && Proxy.isProxyClass(args[0].getClass())
                        && Proxy.getInvocationHandler(args[0]) instanceof Waiting other
                        && orders.equals(other.orders);
            }
            Object response;
            try {
                Class<?> type = method.getDeclaringClass() == Object.class ? Object.class : AsyncOrders.class;
                response = type.getMethod(method.getName(), method.getParameterTypes())
                        .invoke(orders, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
            return response instanceof CompletionStage<?> stage ? await(stage.toCompletableFuture()) : response;
        }

        private static Object await(CompletableFuture<?> response) throws Throwable {
            try {
                return response.get(60, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                throw e.getCause();
            } catch (InterruptedException e) {
                response.cancel(true);
                Thread.currentThread().interrupt();
                throw new CancellationException();
            }
        }
    }
}
