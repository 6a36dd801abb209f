package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.util.List;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The warning about a call in doubt that its caller repeats with a new ID. */
class OkHttpRepeatWarningIT extends OkHttpInterceptorTestBase {
    private static final String REPEATED = "under a new ID";

    private static RequestBody text(String body) {
        return RequestBody.create(body, TEXT);
    }

    private static RequestBody stream(String body) {
        return body(sink -> sink.writeUtf8(body));
    }

    private static void endsUnknown(OkHttpClient client, Request.Builder request) {
        alwaysGet(status(504));
        assertThat(catchThrowable(() -> send(client, request))).isInstanceOf(OutcomeUnknown.class);
        alwaysGet(status(200));
    }

    private static List<String> repeatWarnings(ThrowingCallable work) {
        return warnings(work).stream().filter(line -> line.contains(REPEATED)).toList();
    }

    private static List<String> repeats(OkHttpClient client, Request.Builder first, Request.Builder... next) {
        return repeatWarnings(() -> {
            endsUnknown(client, first);
            for (Request.Builder request : next) {
                status(client, request);
            }
        });
    }

    /** A retry on IOException is what every user of OkHttp has. */
    @Test
    void callInDoubtThatIsMadeAgainUnderANewIdIsAWarningOnce() {
        OkHttpClient client = installed();
        List<String> warnings =
                repeats(client, order().post(text("17")), order().post(text("17")), order().post(text("17")));
        assertThat(warnings).singleElement().asString().contains("POST", "orders", REPEATED, "IdempotenceScope.with");
        assertThat(repeatWarnings(() -> {
                    endsUnknown(client, order().post(text("18")));
                    status(client, order().post(text("18")));
                }))
                .isEmpty();
    }

    @Test
    void streamsAreComparedByWhatWasSent() {
        assertThat(repeats(installed(), order().post(stream("17")), order().post(stream("18"))))
                .isEmpty();
        assertThat(repeats(installed(), order().post(stream("17")), order().post(stream("17"))))
                .singleElement()
                .asString()
                .contains(REPEATED);
    }

    @Test
    void otherCallsAreNoRepetition() {
        assertThat(repeats(
                        installed(),
                        order().post(text("17")),
                        order().post(text("18")),
                        to(url("/other")).post(text("17")),
                        to(url("/orders?customer=2")).post(text("17")),
                        order().patch(text("17"))))
                .isEmpty();
    }

    @Test
    void pathThatEndsAsThatOfTheUnknownCallIsNoRepetition() {
        assertThat(repeats(installed(), to(url("/shop/orders")).post(text("17")), order().post(text("17"))))
                .isEmpty();
    }

    @Test
    void callThatIsMadeAgainUnderItsIdIsNoWarning() {
        OkHttpClient client = installed();
        IdempotenceId id = IdempotenceId.of("job-1");
        assertThat(repeatWarnings(() -> IdempotenceScope.<Integer, IOException>with(id, () -> {
                    endsUnknown(client, order().post(text("17")));
                    return status(client, order().post(text("17")));
                })))
                .isEmpty();
        // Its outcome is known now.
        assertThat(repeatWarnings(() -> status(client, order().post(text("17")))))
                .isEmpty();
    }

    /** It derives the same IDs. */
    @Test
    void handlerThatIsExecutedAgainIsNoWarning() {
        OkHttpClient client = installed();
        assertThat(repeatWarnings(() -> {
                    endsUnknownIn(InboundRequest.of("request-1"), client);
                    Runnable leave = InboundRequest.of("request-1").enter();
                    try {
                        status(client, order().post(text("17")));
                    } finally {
                        leave.run();
                    }
                }))
                .isEmpty();
        assertThat(ids()).hasSize(4).containsOnly(ids().get(0));
    }

    private static void endsUnknownIn(InboundRequest inbound, OkHttpClient client) {
        Runnable leave = inbound.enter();
        try {
            endsUnknown(client, order().post(text("17")));
        } finally {
            leave.run();
        }
    }

    /** They overlap, so neither is a retry of the other. */
    @Test
    void callThatBeganBeforeTheOtherEndedIsNoWarning() {
        OkHttpClient client = installed();
        assertThat(repeatWarnings(() -> {
                    OkHttpClient overlapping = built(client.newBuilder().addInterceptor(chain -> {
                        endsUnknown(client, order().post(text("17")));
                        return chain.proceed(chain.request());
                    }));
                    status(overlapping, order().post(text("17")));
                }))
                .isEmpty();
    }
}
