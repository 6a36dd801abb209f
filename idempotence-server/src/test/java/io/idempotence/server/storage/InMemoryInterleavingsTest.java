package io.idempotence.server.storage;

import org.jetbrains.lincheck.datastructures.Operation;
import org.junit.jupiter.api.Tag;

/**
 * Concurrent calls while time passes. There is room for every record: a room that another record's expiry frees may go to a call that had
 * read the clock before, and no order of the calls shows that.
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
