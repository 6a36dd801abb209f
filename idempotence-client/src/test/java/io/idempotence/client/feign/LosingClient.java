package io.idempotence.client.feign;

import feign.Client;
import feign.Request;
import feign.Response;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;

/** A client that sends every request, but throws the given failures, one after the other, in place of the first responses. */
final class LosingClient implements Client {
    private final Client sockets = new Client.Default(null, null);
    private final Queue<IOException> left;

    LosingClient(IOException... failures) {
        left = new ArrayDeque<>(List.of(failures));
    }

    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        Response response = sockets.execute(request, options);
        IOException failure = left.poll();
        if (failure == null) {
            return response;
        }
        response.close();
        throw failure;
    }
}
