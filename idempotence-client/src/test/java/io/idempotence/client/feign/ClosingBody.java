package io.idempotence.client.feign;

import feign.Response;
import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.nio.charset.Charset;

/** The body of a response that runs an action when it is closed. */
record ClosingBody(Response.Body body, Runnable closed) implements Response.Body {
    @Override
    public Integer length() {
        // As of a response in chunks, which Feign does not read ahead.
        return null;
    }

    @Override
    public boolean isRepeatable() {
        return body.isRepeatable();
    }

    @Override
    public InputStream asInputStream() throws IOException {
        return body.asInputStream();
    }

    @Override
    public Reader asReader(Charset charset) throws IOException {
        return body.asReader(charset);
    }

    @Override
    public void close() throws IOException {
        body.close();
        closed.run();
    }
}
