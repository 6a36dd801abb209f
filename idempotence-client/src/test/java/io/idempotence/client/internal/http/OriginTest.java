package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OriginTest {
    private static final Origin SHOP = new Origin("https", "shop.example", 443);

    @Test
    void spellingAndThePortOfTheSchemeDoNotTellOriginsApart() {
        assertThat(new Origin("HTTPS", "Shop.Example", -1)).isEqualTo(SHOP);
        assertThat(new Origin("http", "shop.example", -1)).isEqualTo(new Origin("http", "shop.example", 80));
    }

    @ParameterizedTest
    @CsvSource({"http, shop.example, 443", "https, www.shop.example, 443", "https, shop.example, 8443"})
    void schemeHostAndPortTellOriginsApart(String scheme, String host, int port) {
        assertThat(new Origin(scheme, host, port)).isNotEqualTo(SHOP);
    }
}
