package feign.hc5;

import feign.Client;
import feign.Request;
import feign.Response;
import java.io.IOException;

/** A client with the class name of Feign's client for Apache HttpClient, but with other fields, as in another build. */
public final class ApacheHttp5Client implements Client {
    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        return new Client.Default(null, null).execute(request, options);
    }
}
