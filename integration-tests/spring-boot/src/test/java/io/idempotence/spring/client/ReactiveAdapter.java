package io.idempotence.spring.client;

import java.util.function.Supplier;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;
import org.springframework.web.service.invoker.AbstractReactorHttpExchangeAdapter;
import org.springframework.web.service.invoker.HttpRequestValues;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An adapter of HTTP service clients like that of {@code WebClient}, in the thread of its caller. */
final class ReactiveAdapter extends AbstractReactorHttpExchangeAdapter {
    private final Supplier<String> exchange;

    ReactiveAdapter(Supplier<String> exchange) {
        this.exchange = exchange;
    }

    @Override
    public boolean supportsRequestAttributes() {
        return true;
    }

    @Override
    @SuppressWarnings("unchecked") // the only type that is asked for
    public <T> Mono<T> exchangeForBodyMono(HttpRequestValues values, ParameterizedTypeReference<T> type) {
        return (Mono<T>) Mono.fromSupplier(exchange);
    }

    @Override
    public Mono<Void> exchangeForMono(HttpRequestValues values) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Mono<HttpHeaders> exchangeForHeadersMono(HttpRequestValues values) {
        throw new UnsupportedOperationException();
    }

    @Override
    public <T> Flux<T> exchangeForBodyFlux(HttpRequestValues values, ParameterizedTypeReference<T> type) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Mono<ResponseEntity<Void>> exchangeForBodilessEntityMono(HttpRequestValues values) {
        throw new UnsupportedOperationException();
    }

    @Override
    public <T> Mono<ResponseEntity<T>> exchangeForEntityMono(
            HttpRequestValues values, ParameterizedTypeReference<T> type) {
        throw new UnsupportedOperationException();
    }

    @Override
    public <T> Mono<ResponseEntity<Flux<T>>> exchangeForEntityFlux(
            HttpRequestValues values, ParameterizedTypeReference<T> type) {
        throw new UnsupportedOperationException();
    }
}
