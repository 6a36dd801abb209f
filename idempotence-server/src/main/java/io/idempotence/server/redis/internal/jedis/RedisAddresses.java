package io.idempotence.server.redis.internal.jedis;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import redis.clients.jedis.HostAndPort;

/**
 * The addresses of Redis: {@code host:port}, or the seeds of a Redis Cluster, {@code host:port;host:port}.
 *
 * <p>A host is a name, an IPv4 address, or an IPv6 address in brackets. Blanks around a place are ignored.
 *
 * @param places at least one; several are the seeds of a Redis Cluster
 */
public record RedisAddresses(List<HostAndPort> places) {
    private static final String FORM =
            "write host:port, or host:port;host:port for a Redis Cluster, for example localhost:6379";

    private static final Pattern BRACKETED = Pattern.compile("\\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%\\w+)?)](.*)");
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?\\.?");
    private static final Pattern HARMLESS = Pattern.compile("[A-Za-z0-9._:\\[\\]-]{1,100}");

    public static RedisAddresses parse(String addresses) {
        if (addresses.isBlank()) {
            throw new IllegalArgumentException("the Redis address is empty; " + FORM);
        }
        if (addresses.contains("://")) {
            throw new IllegalArgumentException("the Redis address is a URI; give it to connect(URI)");
        }
        if (addresses.indexOf('@') >= 0) {
            throw new IllegalArgumentException("the Redis address has an '@'; user and password do not go here,"
                    + " give them in a JedisClientConfig or use connect(URI)");
        }
        if (addresses.indexOf(',') >= 0) {
            throw new IllegalArgumentException("the Redis address has a ','; put ';' between the places");
        }
        String[] parts = addresses.split(";", -1);
        List<HostAndPort> places = new ArrayList<>();
        for (int i = 0; i < parts.length; i++) {
            HostAndPort place = place(i + 1, parts[i].strip());
            int twin = places.indexOf(place);
            if (twin >= 0) {
                throw new IllegalArgumentException(
                        where(i + 1, parts[i].strip()) + " repeats place " + (twin + 1) + "; name each place once");
            }
            places.add(place);
        }
        return new RedisAddresses(List.copyOf(places));
    }

    boolean isCluster() {
        return places.size() > 1;
    }

    private static HostAndPort place(int number, String place) {
        if (place.isEmpty()) {
            throw new IllegalArgumentException(
                    "place " + number + " of the Redis addresses is empty; remove the ';' too many, or " + FORM);
        }
        String host;
        String rest;
        if (place.startsWith("[")) {
            Matcher bracketed = BRACKETED.matcher(place);
            if (!bracketed.matches()) {
                throw wrong(number, place, "has no IPv6 address in its brackets", "write [::1]:6379");
            }
            host = bracketed.group(1);
            rest = bracketed.group(2);
        } else {
            int colon = place.indexOf(':');
            if (colon >= 0 && place.indexOf(':', colon + 1) >= 0) {
                throw wrong(
                        number, place, "has more than one ':'", "put an IPv6 address in brackets, as in [::1]:6379");
            }
            host = colon < 0 ? place : place.substring(0, colon);
            rest = colon < 0 ? "" : place.substring(colon);
            if (!NAME.matcher(host).matches()) {
                throw wrong(
                        number,
                        place,
                        host.isEmpty() ? "has no host" : "has a host with a character that no host has",
                        FORM);
            }
        }
        return new HostAndPort(host.toLowerCase(Locale.ROOT), port(number, place, rest));
    }

    private static int port(int number, String place, String rest) {
        if (rest.isEmpty() || rest.equals(":")) {
            throw wrong(number, place, "has no port", "add one, usually :6379");
        }
        String digits = rest.substring(1);
        if (rest.charAt(0) != ':' || !digits.matches("[0-9]{1,9}")) {
            throw wrong(number, place, "has a port that is not a number", "give a port from 1 to 65535");
        }
        int port = Integer.parseInt(digits);
        if (port < 1 || port > 65_535) {
            throw wrong(number, place, "has port " + port, "give a port from 1 to 65535");
        }
        return port;
    }

    private static IllegalArgumentException wrong(int number, String place, String what, String fix) {
        return new IllegalArgumentException(where(number, place) + " " + what + "; " + fix);
    }

    private static String where(int number, String place) {
        String shown = HARMLESS.matcher(place).matches() ? " (" + place + ")" : "";
        return "place " + number + shown + " of the Redis addresses";
    }

    /** The form in messages: {@code localhost:6379}, {@code [::1]:6379}. */
    static String shown(HostAndPort place) {
        String host = place.getHost();
        return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + place.getPort();
    }

    /** The form in messages: the places, in the order given. */
    @Override
    public String toString() {
        return String.join(";", places.stream().map(RedisAddresses::shown).toList());
    }
}
