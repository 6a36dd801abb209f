package feign.hc5;

import feign.Client;
import feign.Request;
import feign.Response;
import java.io.IOException;

/** Named as Feign's client for Apache HttpClient, and of a build that has other fields. */
public final class ApacheHttp5Client implements Client {
    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        return new Client.Default(null, null).execute(request, options);
    }
}
