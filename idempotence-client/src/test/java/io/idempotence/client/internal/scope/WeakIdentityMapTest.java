package io.idempotence.client.internal.scope;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

class WeakIdentityMapTest {
    private final WeakIdentityMap<Object[], String> map = new WeakIdentityMap<>();

    @Test
    void equalArraysAreDifferentKeys() {
        Object[] a = {};
        Object[] b = {};
        map.put(a, "a");
        map.put(b, "b");
        assertThat(map.get(a)).isEqualTo("a");
        assertThat(map.get(b)).isEqualTo("b");
        assertThat(map.get(new Object[0])).isNull();
    }

    @Test
    void forgetsKeysNobodyHolds() {
        Object[] held = {};
        map.put(held, "held");
        for (int i = 0; i < 1000; i++) {
            map.put(new Object[] {i}, "gone");
        }
        long giveUpAt = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (map.size() > 1 && System.nanoTime() < giveUpAt) {
            System.gc();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        assertThat(map.size()).isEqualTo(1);
        assertThat(map.get(held)).isEqualTo("held");
    }
}
