package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HttpOriginTest {
    private static final HttpOrigin SHOP = new HttpOrigin("https", "shop.example", 443);

    @Test
    void spellingAndThePortOfTheSchemeDoNotMakeOriginsDiffer() {
        assertThat(new HttpOrigin("HTTPS", "Shop.Example", -1)).isEqualTo(SHOP);
        assertThat(new HttpOrigin("http", "shop.example", -1)).isEqualTo(new HttpOrigin("http", "shop.example", 80));
    }

    @ParameterizedTest
    @CsvSource({"http, shop.example, 443", "https, www.shop.example, 443", "https, shop.example, 8443"})
    void schemeHostAndPortMakeOriginsDiffer(String scheme, String host, int port) {
        assertThat(new HttpOrigin(scheme, host, port)).isNotEqualTo(SHOP);
    }
}
