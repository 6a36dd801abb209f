package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import io.idempotence.client.feign.HttpClientTraits.RedirectBehaviour;
import io.idempotence.client.internal.http.Address;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.HttpOrigin;
import io.idempotence.client.internal.http.RedirectRule;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;

/**
 * A redirect of a request that carries an ID (RFC 9110, section 15.4).
 *
 * @param request the next request; without the ID if it is a GET
 * @param repeatsRequest whether it has the method and the body of the first one
 * @param staysAtOrigin false if it goes to another scheme, host or port, which must not get the ID
 * @param target the origin that it goes to
 */
record Redirect(Request request, boolean repeatsRequest, boolean staysAtOrigin, HttpOrigin target) {
    /**
     * Returns the redirect of a response. Empty if the response is not a redirect, if the client would not follow it, or if its target is
     * not an HTTP address.
     *
     * @param client decides how to follow 301, 302 and 303
     */
    static Optional<Redirect> of(Request request, Response response, HttpClientTraits client) {
        RedirectBehaviour behaviour = behaviour(request, response.status(), client);
        if (behaviour == RedirectBehaviour.NOT_FOLLOWED) {
            return Optional.empty();
        }
        Address from = Address.of(request.url()).orElse(null);
        Address responder = responder(response).orElse(from);
        if (from == null || responder == null) {
            return Optional.empty();
        }
        // The GET of an earlier redirect is followed by the same.
        boolean repeats = behaviour == RedirectBehaviour.SAME_REQUEST || request.httpMethod() == Request.HttpMethod.GET;
        return HeaderLines.of(response.headers(), "Location").stream()
                .findFirst()
                .flatMap(responder::resolve)
                .map(to -> to(from, responder, to, request, repeats));
    }

    private static RedirectBehaviour behaviour(Request request, int status, HttpClientTraits client) {
        if (RedirectRule.repeatsRequest(status)) {
            return RedirectBehaviour.SAME_REQUEST;
        }
        return RedirectRule.mayBecomeGet(status)
                ? client.redirectBehaviour(request, status)
                : RedirectBehaviour.NOT_FOLLOWED;
    }

    private static Redirect to(Address from, Address responder, Address to, Request request, boolean repeats) {
        boolean staysAtInstance = to.origin().equals(responder.origin());
        Map<String, Collection<String>> headers = FeignHeaders.copyOf(request.headers());
        if (!repeats) {
            headers.keySet().removeIf(RedirectRule::isLeftOutOfAGet);
        }
        Request next = Request.create(
                repeats ? request.httpMethod() : Request.HttpMethod.GET,
                (staysAtInstance ? to.at(from) : to).toString(),
                headers,
                repeats ? request.body() : null,
                request.charset(),
                request.requestTemplate());
        return new Redirect(next, repeats, staysAtInstance || to.origin().equals(from.origin()), to.origin());
    }

    /** The address that responded. A load balancer below replaces a service's name by an instance. */
    private static Optional<Address> responder(Response response) {
        return Optional.ofNullable(response.request()).flatMap(request -> Address.of(request.url()));
    }
}
