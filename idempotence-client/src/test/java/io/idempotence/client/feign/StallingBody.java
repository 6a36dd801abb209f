package io.idempotence.client.feign;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.util.concurrent.CountDownLatch;

/** A stream that delivers nothing until it is ended. */
final class StallingBody extends InputStream {
    private final CountDownLatch ended = new CountDownLatch(1);

    @Override
    public int read() throws IOException {
        try {
            ended.await();
            return -1;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException();
        }
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
        return length == 0 ? 0 : read();
    }

    void end() {
        ended.countDown();
    }
}
