package io.idempotence.client.okhttp;

import io.idempotence.client.internal.http.Observation;
import java.io.IOException;
import java.util.function.BooleanSupplier;
import okhttp3.MediaType;
import okhttp3.RequestBody;
import okio.BufferedSink;
import org.jspecify.annotations.Nullable;

/** The body of a logical call, as one attempt sends it. */
final class AttemptBody extends RequestBody {
    private final RepeatableBody body;
    private final Observation seen;
    private final BooleanSupplier givenUp;

    AttemptBody(RepeatableBody body, Observation seen, BooleanSupplier givenUp) {
        this.body = body;
        this.seen = seen;
        this.givenUp = givenUp;
    }

    @Override
    public @Nullable MediaType contentType() {
        return body.type();
    }

    @Override
    public long contentLength() {
        return body.length();
    }

    @Override
    public boolean isDuplex() {
        return body.isDuplex();
    }

    /** OkHttp calls this before it sends a request again by itself. */
    @Override
    public boolean isOneShot() {
        return body.isOneShot();
    }

    @Override
    public void writeTo(BufferedSink sink) throws IOException {
        seen.bodyTaken();
        try {
            body.writeTo(sink, givenUp);
        } finally {
            if (!body.isWritable()) {
                seen.mustNotBeSentAgain();
            }
        }
    }
}
