package io.idempotence.client.internal.http;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The address of an HTTP request (RFC 9110, section 4.2), as the text that is sent. References are resolved by RFC 3986; {@link URI}
 * follows its predecessor.
 *
 * @param path empty, or with a leading slash
 * @param query without its question mark, or null
 */
public record Address(
        String scheme,
        String authority,
        String path,
        @Nullable String query) {
    /** Parses an address. Empty if {@code text} is not an absolute HTTP address. */
    public static Optional<Address> of(String text) {
        return parse(text)
                .flatMap(uri -> checked(uri.getScheme(), uri.getRawAuthority(), uri.getRawPath(), uri.getRawQuery()));
    }

    /** Resolves {@code reference} against this address (RFC 3986, section 5.2.2). Empty if the result is not an HTTP address. */
    public Optional<Address> resolve(String reference) {
        return parse(reference).flatMap(uri -> {
            String otherPath = uri.getRawPath();
            if (uri.getScheme() != null) {
                return checked(uri.getScheme(), uri.getRawAuthority(), withoutDots(otherPath), uri.getRawQuery());
            }
            if (uri.getRawAuthority() != null) {
                return checked(scheme, uri.getRawAuthority(), withoutDots(otherPath), uri.getRawQuery());
            }
            if (otherPath.isEmpty()) {
                return Optional.of(
                        new Address(scheme, authority, path, uri.getRawQuery() == null ? query : uri.getRawQuery()));
            }
            String whole =
                    otherPath.startsWith("/") ? otherPath : path.substring(0, path.lastIndexOf('/') + 1) + otherPath;
            return Optional.of(new Address(scheme, authority, withoutDots(whole), uri.getRawQuery()));
        });
    }

    public HttpOrigin origin() {
        String hostAndPort = authority.substring(authority.indexOf('@') + 1);
        int colon = portAt(hostAndPort);
        String port = colon < 0 ? "" : hostAndPort.substring(colon + 1);
        return new HttpOrigin(
                scheme,
                colon < 0 ? hostAndPort : hostAndPort.substring(0, colon),
                port.isEmpty() ? -1 : Integer.parseInt(port));
    }

    /** Returns this address with the scheme and authority of another. */
    public Address at(Address other) {
        return new Address(other.scheme, other.authority, path, query);
    }

    @Override
    public String toString() {
        return scheme + "://" + authority + pathAndQuery();
    }

    /** The path, at least a slash, and the query if there is one. */
    public String pathAndQuery() {
        return (path.isEmpty() ? "/" : path) + (query == null ? "" : "?" + query);
    }

    /** Empty also for a URI without a path, such as {@code mailto:x}. */
    private static Optional<URI> parse(String text) {
        try {
            return Optional.of(new URI(text.trim())).filter(uri -> !uri.isOpaque());
        } catch (URISyntaxException e) {
            return Optional.empty();
        }
    }

    private static Optional<Address> checked(
            @Nullable String scheme, @Nullable String authority, String path, @Nullable String query) {
        return scheme != null
                        && authority != null
                        && (scheme.equalsIgnoreCase("http") || scheme.equalsIgnoreCase("https"))
                        && isHost(authority)
                ? Optional.of(new Address(scheme, authority, path, query))
                : Optional.empty();
    }

    /** Whether every HTTP client reads the same host and port from {@code authority}. */
    private static boolean isHost(String authority) {
        String hostAndPort = authority.substring(authority.indexOf('@') + 1);
        int colon = portAt(hostAndPort);
        return !hostAndPort.contains("@")
                && !hostAndPort.isEmpty()
                && colon != 0
                && (colon < 0 || hostAndPort.substring(colon + 1).matches("[0-9]{0,5}"));
    }

    /** The position of the colon before the port, or -1. An IPv6 address has colons of its own. */
    private static int portAt(String hostAndPort) {
        int colon = hostAndPort.lastIndexOf(':');
        return colon > hostAndPort.lastIndexOf(']') ? colon : -1;
    }

    /** Removes dot segments (RFC 3986, section 5.2.4). */
    private static String withoutDots(String path) {
        if (path.isEmpty()) {
            return path;
        }
        String[] segments = (path.startsWith("/") ? path.substring(1) : path).split("/", -1);
        List<String> kept = new ArrayList<>();
        for (int i = 0; i < segments.length; i++) {
            boolean up = segments[i].equals("..");
            if (up && !kept.isEmpty()) {
                kept.remove(kept.size() - 1);
            }
            if (!up && !segments[i].equals(".")) {
                kept.add(segments[i]);
            } else if (i == segments.length - 1) {
                kept.add("");
            }
        }
        return "/" + String.join("/", kept);
    }
}
