package io.idempotence.server.redis.internal;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The self-description of a server.
 *
 * @param fields the fields of {@code INFO}; empty if the user lacks the right
 */
public record ServerInfo(Map<String, String> fields) {
    private static final Pattern VERSION = Pattern.compile("(\\d{1,4})\\.(\\d{1,4})\\..*");

    private static final Pattern WATCHED = Pattern.compile("^name=([^,]*)");

    public static final ServerInfo UNKNOWN = new ServerInfo(Map.of());

    /** Reads the reply to {@code INFO}, which some drivers return as a list of one. */
    public static ServerInfo parse(Object reply) {
        Object info = reply instanceof List<?> list ? list.get(0) : reply;
        Map<String, String> fields = new HashMap<>();
        for (String line : new String((byte[]) info, StandardCharsets.UTF_8).split("\r?\n", -1)) {
            int colon = line.indexOf(':');
            if (colon > 0) {
                fields.put(line.substring(0, colon), line.substring(colon + 1));
            }
        }
        return new ServerInfo(fields);
    }

    public boolean isKnown() {
        return !fields.isEmpty();
    }

    public boolean isInCluster() {
        return "1".equals(fields.get("cluster_enabled"));
    }

    public boolean isSentinel() {
        return "sentinel".equals(fields.get("redis_mode"));
    }

    /** The names of the primaries that a Sentinel watches, in order. */
    public List<String> watched() {
        return fields.entrySet().stream()
                .filter(field -> field.getKey().matches("master\\d+"))
                .map(field -> WATCHED.matcher(field.getValue()))
                .filter(Matcher::find)
                .map(name -> name.group(1))
                .sorted()
                .toList();
    }

    private boolean isReplica() {
        return "slave".equals(fields.get("role"));
    }

    public boolean isClusterReplica() {
        return isInCluster() && isReplica();
    }

    /** The settings by which the server could lose or refuse claims, each with the fix. */
    public List<String> risks() {
        List<String> risks = new ArrayList<>();
        String policy = fields.getOrDefault("maxmemory_policy", "noeviction");
        if (!policy.equals("noeviction")) {
            risks.add("maxmemory-policy " + policy
                    + " may evict records, and what they protect then runs again; set noeviction");
        }
        if (isReplica()) {
            risks.add("it is a replica, on which every claim will fail; connect to the primary");
        }
        if ("0".equals(fields.get("aof_enabled"))) {
            risks.add("it keeps no append-only file, so that a restart can forget claims; set appendonly yes");
        }
        Matcher version = VERSION.matcher(fields.getOrDefault("redis_version", ""));
        if (version.matches()) {
            int major = Integer.parseInt(version.group(1));
            if (major < 6 || (major == 6 && Integer.parseInt(version.group(2)) < 2)) {
                risks.add("it is older than Redis 6.2, which is not tested");
            }
        }
        return risks;
    }
}
