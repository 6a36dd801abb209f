package io.idempotence.it.client;

import feign.FeignException;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RequestRefused;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** A client with the client half installed, whatever its HTTP client is. */
interface ClientUnderTest {
    /**
     * Sends a POST that carries an ID to {@code /orders}, and waits for the end of the call.
     *
     * @param body empty for none
     */
    End order(String body);

    default End order() {
        return order("x");
    }

    /**
     * How a call ended, as its caller sees it.
     *
     * @param status of the response, or 0 if the caller sees none
     * @param body of the response
     * @param thrown what the caller catches, or null if nothing
     */
    record End(int status, String body, @Nullable Throwable thrown) {
        static End thrown(Throwable thrown) {
            return new End(0, "", thrown);
        }

        /** To callers of Feign, an error status is an exception. */
        static End ofFeign(Callable<String> call) {
            try {
                return new End(200, call.call(), null);
            } catch (Exception e) {
                boolean response = e instanceof FeignException feign
                        && feign.status() >= 300
                        && !(e instanceof OutcomeUnknown)
                        && !(e instanceof RequestRefused);
                return response
                        ? new End(((FeignException) e).status(), ((FeignException) e).contentUTF8(), e)
                        : thrown(e);
            }
        }
    }
}
