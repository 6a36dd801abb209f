package io.idempotence.benchmarks;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;

/** Resources that are closed when a measurement is over, the last one first. */
final class Resources implements AutoCloseable {
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();

    <T extends AutoCloseable> T add(T resource) {
        opened.push(resource);
        return resource;
    }

    @Override
    public void close() throws IOException {
        while (!opened.isEmpty()) {
            try {
                opened.pop().close();
            } catch (Exception e) {
                throw new IOException("a resource of the measurement could not be closed", e);
            }
        }
    }
}
