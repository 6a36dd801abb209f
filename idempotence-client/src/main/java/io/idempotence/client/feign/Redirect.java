package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.Request;
import feign.Response;
import io.idempotence.client.retry.HeaderLines;
import java.util.Arrays;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The request that an answer asks for in place of the one that was sent (RFC 9110, section 15.4). HTTP clients would send it
 * with the headers of the first, and so tell an ID to strangers.
 *
 * @param request what to send
 * @param dropsId it goes to another origin, which must not learn the ID
 * @param repeatsRequest it has the method and the body of the first
 */
record Redirect(Request request, boolean dropsId, boolean repeatsRequest) {
    private static final Set<Integer> STATUSES = Set.of(301, 302, 303, 307, 308);
    private static final Set<Integer> WITH_GET_AFTER_POST = Set.of(301, 302);
    private static final Set<String> OF_THE_ID = lower(IDEMPOTENCY_KEY, IDEMPOTENCY_ATTEMPT);
    private static final Set<String> OF_THE_BODY =
            lower("Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding");
    private static final Set<String> OF_THE_ORIGIN = lower("Authorization", "Proxy-Authorization", "Cookie", "Host");

    /** Empty if the answer is no redirect that can be followed. From https to http it cannot: what was secret would not be. */
    static Optional<Redirect> of(Request request, Response response) {
        if (!STATUSES.contains(response.status())) {
            return Optional.empty();
        }
        Address from = Address.of(request.url()).orElse(null);
        Address answering = answering(response).orElse(from);
        Address to = HeaderLines.of(response.headers(), "Location").stream()
                .findFirst()
                .flatMap(location -> answering == null ? Optional.empty() : answering.resolve(location))
                .orElse(null);
        if (from == null || answering == null || to == null) {
            return Optional.empty();
        }
        boolean stays = to.origin().equals(answering.origin());
        boolean leaves = !stays && !to.origin().equals(from.origin());
        if (!stays && !to.isSecure() && (from.isSecure() || answering.isSecure())) {
            return Optional.empty();
        }
        boolean repeats = isRepeated(request.httpMethod(), response.status());
        boolean carriesId = !KeyHeader.lines(request.headers()).isEmpty();
        Map<String, Collection<String>> headers = RequestHeaders.without(
                request.headers(),
                name -> (OF_THE_ID.contains(name) && (leaves || !repeats))
                        || (OF_THE_BODY.contains(name) && !repeats)
                        || (OF_THE_ORIGIN.contains(name) && leaves));
        Request next = Request.create(
                repeats ? request.httpMethod() : Request.HttpMethod.GET,
                (stays ? to.at(from) : to).toString(),
                headers,
                repeats ? request.body() : null,
                request.charset(),
                request.requestTemplate());
        return Optional.of(new Redirect(next, leaves && repeats && carriesId, repeats));
    }

    /** As browsers do it. */
    private static boolean isRepeated(Request.HttpMethod method, int status) {
        return status != 303 && !(method == Request.HttpMethod.POST && WITH_GET_AFTER_POST.contains(status));
    }

    /** Who gave the answer: a load balancer below puts an instance in the place of a service's name. */
    private static Optional<Address> answering(Response response) {
        return Optional.ofNullable(response.request()).flatMap(request -> Address.of(request.url()));
    }

    private static Set<String> lower(String... names) {
        return Set.of(
                Arrays.stream(names).map(name -> name.toLowerCase(Locale.ROOT)).toArray(String[]::new));
    }
}
