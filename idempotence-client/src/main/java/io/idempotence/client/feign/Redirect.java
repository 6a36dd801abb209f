package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import feign.Request;
import feign.Response;
import io.idempotence.client.retry.HeaderLines;
import io.idempotence.client.retry.Origin;
import java.net.URI;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

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
        URI from = uri(request.url());
        URI location = HeaderLines.of(response.headers(), "Location").stream()
                .findFirst()
                .map(Redirect::uri)
                .orElse(null);
        URI answering = answering(response, from);
        if (from == null || location == null || answering == null) {
            return Optional.empty();
        }
        URI to = answering.resolve(location);
        if (!isHttp(to)) {
            return Optional.empty();
        }
        boolean stays = origin(to).equals(origin(answering));
        boolean leaves = !stays && !origin(to).equals(origin(from));
        if (!stays && !isSecure(to) && (isSecure(from) || isSecure(answering))) {
            return Optional.empty();
        }
        boolean repeats = isRepeated(request.httpMethod(), response.status());
        boolean carriesId = !KeyHeader.lines(request.headers()).isEmpty();
        Map<String, Collection<String>> headers = new LinkedHashMap<>(request.headers());
        headers.keySet().removeIf(name -> {
            String header = name.toLowerCase(Locale.ROOT);
            return (OF_THE_ID.contains(header) && (leaves || !repeats))
                    || (OF_THE_BODY.contains(header) && !repeats)
                    || (OF_THE_ORIGIN.contains(header) && leaves);
        });
        Request next = Request.create(
                repeats ? request.httpMethod() : Request.HttpMethod.GET,
                stays ? at(from, to) : to.toString(),
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
    private static @Nullable URI answering(Response response, @Nullable URI asked) {
        Request request = response.request();
        return request == null ? asked : uri(request.url());
    }

    /** What {@code to} names, of whom {@code asked} names. */
    private static String at(URI asked, URI to) {
        String query = to.getRawQuery();
        return asked.getScheme() + "://" + asked.getRawAuthority() + to.getRawPath()
                + (query == null ? "" : "?" + query);
    }

    private static @Nullable URI uri(String text) {
        try {
            return URI.create(text.trim());
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    private static boolean isHttp(URI uri) {
        return uri.getHost() != null && (isSecure(uri) || "http".equalsIgnoreCase(uri.getScheme()));
    }

    private static boolean isSecure(URI uri) {
        return "https".equalsIgnoreCase(uri.getScheme());
    }

    /** A name with an underscore in it is no host to {@link URI}; it is none that a redirect can name either. */
    private static Origin origin(URI uri) {
        return new Origin(uri.getScheme(), Objects.requireNonNullElse(uri.getHost(), ""), uri.getPort());
    }

    private static Set<String> lower(String... names) {
        return Set.of(
                Arrays.stream(names).map(name -> name.toLowerCase(Locale.ROOT)).toArray(String[]::new));
    }
}
