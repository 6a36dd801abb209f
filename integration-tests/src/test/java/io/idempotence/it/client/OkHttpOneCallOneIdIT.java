package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import feign.BaseBuilder;
import feign.Feign;
import org.junit.jupiter.api.Test;

class OkHttpOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }

    /** Not in the contract: Feign's default client cannot send PATCH. */
    @Test
    void patchCarriesAnId() {
        attemptsUpTo(1, status(500));
        orders().change("x");
        assertOneId();
        assertThat(received()).hasSize(2);
    }
}
