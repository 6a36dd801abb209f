package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import redis.clients.jedis.HostAndPort;

class RedisAddressesTest {
    @ParameterizedTest
    @CsvSource({
        "localhost:6379, localhost:6379",
        "'  localhost:6379 ', localhost:6379",
        "Redis-1.Example.com:1, redis-1.example.com:1",
        "redis_master:65535, redis_master:65535",
        "10.0.0.1:7000, 10.0.0.1:7000",
        "[::1]:6379, [::1]:6379",
        "[2001:DB8::1]:6379, [2001:db8::1]:6379",
        "[fe80::1%eth0]:6379, [fe80::1%eth0]:6379",
        "a:1;b:2, a:1;b:2",
        "' a:1 ; [::1]:2 ;c:3', a:1;[::1]:2;c:3",
        "a:1;a:2, a:1;a:2"
    })
    void placesAreReadInTheirOrder(String given, String expected) {
        RedisAddresses addresses = RedisAddresses.parse(given);
        assertThat(addresses).hasToString(expected);
        assertThat(addresses.isCluster()).isEqualTo(given.contains(";"));
    }

    @Test
    void bracketsAreNotPartOfTheHost() {
        assertThat(RedisAddresses.parse("[::1]:6379").places()).containsExactly(new HostAndPort("::1", 6379));
    }

    @ParameterizedTest
    @CsvSource({
        "'', the Redis address is empty",
        "'  ', the Redis address is empty",
        "host, place 1 (host) of the Redis addresses has no port; add one",
        "host:, place 1 (host:) of the Redis addresses has no port",
        "host:0, has port 0; give a port from 1 to 65535",
        "host:99999, has port 99999; give a port from 1 to 65535",
        "host:65536, has port 65536",
        "host:-1, has a port that is not a number",
        "host:6379x, has a port that is not a number",
        "host:99999999999, has a port that is not a number",
        "'host: 6379', has a port that is not a number",
        ":6379, place 1 (:6379) of the Redis addresses has no host",
        "a:1;;b:2, place 2 of the Redis addresses is empty; remove the ';'",
        "a:1;, place 2 of the Redis addresses is empty",
        ";a:1, place 1 of the Redis addresses is empty",
        "a:1;b, place 2 (b) of the Redis addresses has no port",
        "a:1;b:2;A:1, place 3 (A:1) of the Redis addresses repeats place 1; name each place once",
        "::1:6379, put an IPv6 address in brackets",
        "2001:db8::1, put an IPv6 address in brackets",
        "a:1:2, has more than one ':'",
        "[::1], has no port",
        "[::1]6379, has a port that is not a number",
        "[::1:6379, has no IPv6 address in its brackets",
        "[localhost]:6379, has no IPv6 address in its brackets",
        "'a b:1', place 1 of the Redis addresses has a host with a character that no host has",
        "'a:1,b:2', put ';' between the places",
        "redis://:s3cret@host:1, give it to connect(URI)",
        "rediss://host:1, give it to connect(URI)",
        "app:s3cret@host:1, user and password do not go here"
    })
    void errorContainsThePlaceTheFaultAndTheFix(String given, String message) {
        assertThatThrownBy(() -> RedisAddresses.parse(given))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message)
                .hasMessageNotContaining("s3cret");
    }
}
