package io.idempotence.server.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CanonicalJsonTest {
    private final BodyComparison comparison = BodyComparison.canonicalJson();

    private byte[] of(String json) {
        return comparison.bytesToCompare("application/json", json.getBytes(StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '~',
            quoteCharacter = '`',
            value = {
                "{\"a\":1,\"b\":[true,null]} ~ { \"b\" : [ true, null ], \"a\":1 }",
                "{\"a\":{\"x\":\"1\",\"y\":2}} ~ {\"a\":{\"y\":2,\"x\":\"1\"}}",
                "\"caf\\u00e9\" ~ \"café\"",
                "[\"\\/\"] ~ [\"/\"]",
                "{\"\\u0061\":1} ~ {\"a\":1}",
            })
    void whatMeansTheSameIsTheSame(String one, String other) {
        assertThat(of(one)).isEqualTo(of(other)).hasSize(32);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '~',
            quoteCharacter = '`',
            value = {
                "{\"a\":1} ~ {\"a\":\"1\"}",
                "{\"a\":1} ~ {\"a\":1.0}",
                "{\"a\":1} ~ {\"a\":1,\"b\":null}",
                "[1,2] ~ [2,1]",
                "[[1],2] ~ [1,[2]]",
                "[] ~ {}",
                "null ~ \"null\"",
                "true ~ \"true\"",
                "\"a\" ~ \"a \"",
                "{\"a\":\"\",\"b\":\"x\"} ~ {\"a\":\"x\",\"b\":\"\"}",
            })
    void whatMeansSomethingElseDiffers(String one, String other) {
        assertThat(of(one)).isNotEqualTo(of(other));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{\"a\":1",
                "{a:1}",
                "{'a':1}",
                "{\"a\":1}{\"b\":2}",
                "{\"a\":1,\"a\":2}",
                "[1,]",
                "[NaN]",
                "\"\\ud800\"",
                "{\"\\udc00\":1}",
                "// comment\n1",
            })
    void whatIsNoPlainJsonCountsByteByByte(String body) {
        assertThat(of(body)).isEqualTo(body.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void bytesThatAreNoTextCountAsTheyAre() {
        byte[] body = {'"', (byte) 0xff, '"'};
        assertThat(comparison.bytesToCompare("application/json", body)).isEqualTo(body);
    }

    @Test
    void nestingHasALimit() {
        String deep = "[".repeat(201) + "]".repeat(201);
        assertThat(of(deep)).hasSize(32);
        String deeper = "[".repeat(100_000) + "]".repeat(100_000);
        assertThat(of(deeper)).isEqualTo(deeper.getBytes(StandardCharsets.UTF_8));
    }

    /** Each member of an open object is held in memory: 16 bytes of JSON took two hundred. */
    @Test
    void anObjectsMembersHaveALimitAndTheirNumberInAllHasNone() {
        assertThat(of(members(9_998, "{\"a\":1,\"b\":2}"))).isEqualTo(of(members(9_998, "{\"b\":2,\"a\":1}")));
        String many = "[" + "{\"a\":1},".repeat(20_000) + "0]";
        assertThat(of(many)).hasSize(32);
        String tooMany = members(10_001, "0");
        assertThat(of(tooMany)).isEqualTo(tooMany.getBytes(StandardCharsets.UTF_8));
        String nested = "{\"a\":" + members(10_000, "0") + "}";
        assertThat(of(nested)).isEqualTo(nested.getBytes(StandardCharsets.UTF_8));
    }

    /** An object with members of its own, and with one that has a value. */
    private static String members(int all, String valueOfLast) {
        return IntStream.rangeClosed(1, all)
                .mapToObj(i -> "\"m" + i + "\":" + (i == all ? valueOfLast : "0"))
                .collect(Collectors.joining(",", "{", "}"));
    }

    @Test
    void onlyJsonIsReadAsJson() {
        byte[] body = "{ \"a\" : 1 }".getBytes(StandardCharsets.UTF_8);
        assertThat(comparison.bytesToCompare("text/plain", body)).isEqualTo(body);
        assertThat(comparison.bytesToCompare("", body)).isEqualTo(body);
        assertThat(comparison.bytesToCompare("application/merge-patch+json", body))
                .isEqualTo(of("{\"a\":1}"));
        assertThat(BodyComparison.bytes().bytesToCompare("application/json", body))
                .isEqualTo(body);
    }

    @Test
    void memoryForTheLongestTextIsReserved() {
        assertThat(CanonicalJson.memoryOf(comparison, "application/json", 100)).isEqualTo(500);
        assertThat(CanonicalJson.memoryOf(comparison, "application/problem+json", 100))
                .isEqualTo(500);
        assertThat(CanonicalJson.memoryOf(comparison, "text/plain", 100)).isZero();
        assertThat(CanonicalJson.memoryOf(BodyComparison.bytes(), "application/json", 100))
                .isZero();
    }
}
