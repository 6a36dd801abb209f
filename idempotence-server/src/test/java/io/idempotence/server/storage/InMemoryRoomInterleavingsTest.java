package io.idempotence.server.storage;

import org.junit.jupiter.api.Tag;

/** Concurrent calls for more records than there is room for. No time passes. */
public @Tag("interleavings") class InMemoryRoomInterleavingsTest extends InMemoryInterleavings {
    /** Called by Lincheck. */
    public InMemoryRoomInterleavingsTest() {
        super(2);
    }
}
