package io.idempotence.spring.actuate;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceListener;
import io.idempotence.server.storage.IdempotenceStorage;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A server half in memory. */
@Configuration(proxyBeanMethods = false)
class ServerForOperators {
    @Bean
    IdempotenceStorage storage() {
        return IdempotenceStorage.inMemory();
    }

    @Bean
    Idempotence idempotence(IdempotenceStorage storage, ObjectProvider<IdempotenceListener> listener) {
        Idempotence.Builder builder = Idempotence.builder(storage);
        listener.ifAvailable(builder::listener);
        return builder.build();
    }
}
