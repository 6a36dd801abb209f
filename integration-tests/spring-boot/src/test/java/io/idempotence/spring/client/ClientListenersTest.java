package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Several listeners that are beans, one of which does not work. */
class ClientListenersTest {
    private final List<String> heard = new ArrayList<>();

    /** @param broken throws what a metrics library of the wrong version throws */
    private IdempotenceClientListener listener(String name, boolean broken) {
        return new IdempotenceClientListener() {
            private void hear(String what) {
                if (broken) {
                    throw new NoSuchMethodError("of a library");
                }
                heard.add(name + " " + what);
            }

            @Override
            public IdempotenceClientListener ofCall(String client, String method) {
                hear("begins");
                return this;
            }

            @Override
            public Runnable enterRequest() {
                hear("enters");
                return () -> hear("leaves");
            }

            @Override
            public void onAttempt(IdempotenceClientAttemptEvent event) {
                hear("attempt");
            }

            @Override
            public void onCall(IdempotenceClientEvent event) {
                hear("call");
            }
        };
    }

    @Test
    void nullOfOneKeepsNothingFromTheOthers() {
        IdempotenceClientListener empty = new IdempotenceClientListener() {
            @Override
            public IdempotenceClientListener ofCall(String client, String method) {
                return null;
            }

            @Override
            public Runnable enterRequest() {
                return null;
            }

            @Override
            public void onCall(IdempotenceClientEvent event) {
                throw new IllegalStateException("there was no call");
            }
        };
        List<IdempotenceClientListener> beans = List.of(listener("first", false), empty, listener("last", false));
        new ClientListeners(() -> beans)
                .ofCall("orders", "create")
                .enterRequest()
                .run();
        assertThat(heard)
                .containsExactly(
                        "first begins", "last begins", "first enters", "last enters", "last leaves", "first leaves");
    }

    /** It kept the others from their events, and those that had entered a request from leaving it: a trace stayed in the thread. */
    @Test
    void errorOfOneKeepsNothingFromTheOthers() {
        List<IdempotenceClientListener> beans =
                List.of(listener("first", false), listener("broken", true), listener("last", false));
        IdempotenceClientListener call = new ClientListeners(() -> beans).ofCall("orders", "create");
        call.enterRequest().run();
        call.onCall(new IdempotenceClientEvent(
                "orders", "create", IdempotenceClientEvent.Result.SUCCEEDED, Optional.empty(), 1, 1, Duration.ZERO, 0));
        assertThat(heard)
                .containsExactly(
                        "first begins",
                        "last begins",
                        "first enters",
                        "last enters",
                        "last leaves",
                        "first leaves",
                        "first call",
                        "last call");
    }
}
