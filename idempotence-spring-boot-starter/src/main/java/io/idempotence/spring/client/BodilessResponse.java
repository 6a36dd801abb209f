package io.idempotence.spring.client;

import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
import java.io.InputStream;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.client.ClientHttpResponse;

/** An error response that was seen and closed. It has the status and the headers. */
final class BodilessResponse implements ClientHttpResponse {
    private final int status;
    private final HttpHeaders headers = new HttpHeaders();

    BodilessResponse(Observation seen) {
        status = seen.status();
        seen.headers().forEach((name, lines) -> {
            if (!HeaderLines.isOfBody(name)) {
                lines.forEach(line -> headers.add(name, line));
            }
        });
    }

    @Override
    public HttpStatusCode getStatusCode() {
        return HttpStatusCode.valueOf(status);
    }

    @Override
    public String getStatusText() {
        return "";
    }

    @Override
    public HttpHeaders getHeaders() {
        return headers;
    }

    @Override
    public InputStream getBody() {
        return InputStream.nullInputStream();
    }

    @Override
    public void close() {}
}
