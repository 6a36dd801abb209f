package io.idempotence.server.storage;

import org.jetbrains.lincheck.datastructures.Operation;
import org.junit.jupiter.api.Tag;

/**
 * Concurrent calls while time passes. There is room for every record. With less room, a claim that has read the clock could get the room
 * of a record that expires meanwhile, and no order of the calls explains that.
 */
public @Tag("interleavings") class InMemoryInterleavingsTest extends InMemoryInterleavings {
    /** Called by Lincheck. */
    public InMemoryInterleavingsTest() {
        super(3);
    }

    @Operation
    public void leaseEnds() {
        clock.advance(LEASE);
    }
}
