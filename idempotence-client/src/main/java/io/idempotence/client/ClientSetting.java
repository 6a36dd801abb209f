package io.idempotence.client;

import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import io.idempotence.internal.Durations;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** A setting: its name, allowed values and default. */
final class ClientSetting<T> {
    private static final Duration LONGEST = Duration.ofDays(1);

    static final ClientSetting<Boolean> ENABLED =
            new ClientSetting<>("enabled", "true or false", true, ClientSetting::trueOrFalse, null);
    static final ClientSetting<Style> HEADER_STYLE = new ClientSetting<>(
            "header-style", "quoted or bare", Style.QUOTED, text -> Style.valueOf(text.toUpperCase(Locale.ROOT)), null);
    static final ClientSetting<Set<String>> METHODS = new ClientSetting<>(
            "methods",
            "a list such as POST,PATCH of POST, PATCH, PUT, DELETE; GET, HEAD, OPTIONS and TRACE never carry an ID",
            Set.of("POST", "PATCH"),
            text -> list(text, word -> word.toUpperCase(Locale.ROOT)),
            v -> !v.isEmpty() && Set.of("POST", "PATCH", "PUT", "DELETE").containsAll(v));
    static final ClientSetting<String> GENERATOR_TYPE =
            text("generator.type", "uuid, application or snowflake", "uuid", "uuid|application|snowflake");
    static final ClientSetting<String> GENERATOR_APPLICATION = text(
            "generator.application",
            "1 to 64 characters: a letter or digit, then letters, digits, '.', '_', '-'",
            null,
            "[A-Za-z0-9][A-Za-z0-9._-]{0,63}");
    static final ClientSetting<Integer> GENERATOR_NODE = integer("generator.node", null, 0, 1023);
    static final ClientSetting<Duration> DEADLINE = duration(
            "deadline", "a duration above 0, at most 1 day, such as 10s", Duration.ofSeconds(10), true, LONGEST);
    static final ClientSetting<Integer> MAX_ATTEMPTS = integer("retry.max-attempts", 3, 1, 100);
    static final ClientSetting<Duration> WAIT =
            duration("retry.wait", "a duration, at most 1 day, such as 100ms", Duration.ofMillis(100), false, LONGEST);
    static final ClientSetting<Double> MULTIPLIER = number("retry.multiplier", "a number from 1 to 100", 2.0, 1, 100);
    static final ClientSetting<Duration> MAX_WAIT =
            duration("retry.max-wait", "a duration, at most 1 day, such as 2s", Duration.ofSeconds(2), false, LONGEST);
    static final ClientSetting<Double> JITTER = number("retry.jitter", "a number from 0 to 1", 1.0, 0, 1);
    static final ClientSetting<Set<Integer>> STATUSES = new ClientSetting<>(
            "retry.statuses",
            "a list of HTTP statuses from 400 to 599",
            Set.of(408, 425, 429, 500, 502, 503, 504),
            text -> list(text, Integer::valueOf),
            v -> v.stream().allMatch(status -> status >= 400 && status <= 599));
    static final ClientSetting<Duration> PREFER_WAIT = duration(
            "in-progress.prefer-wait",
            "a duration, at most 1 day, such as 5s; 0s sends no preference",
            Duration.ofSeconds(5),
            false,
            LONGEST);
    static final ClientSetting<Duration> SERVER_RETENTION = duration(
            "server-retention",
            "a duration above 0, at most 3650 days, such as 24h or 30d",
            Duration.ofHours(24),
            true,
            Duration.ofDays(3650));
    static final ClientSetting<Integer> BUDGET_CAPACITY = integer("budget.capacity", 500, 0, 1_000_000);
    static final ClientSetting<Integer> BUDGET_COST = integer("budget.cost", 5, 0, 1_000_000);
    static final ClientSetting<Integer> BUDGET_REFUND = integer("budget.refund", 1, 0, 1_000_000);

    /** The generator, which only code can set. */
    static final ClientSetting<IdempotenceIdGenerator> GENERATOR = new ClientSetting<>(
            "generator",
            "set in code",
            null,
            text -> {
                throw new IllegalArgumentException("set in code");
            },
            null);

    /** The settings that a file, a system property or the environment can contain. */
    static final List<ClientSetting<?>> LOADABLE = List.of(
            ENABLED,
            HEADER_STYLE,
            METHODS,
            GENERATOR_TYPE,
            GENERATOR_APPLICATION,
            GENERATOR_NODE,
            DEADLINE,
            MAX_ATTEMPTS,
            WAIT,
            MULTIPLIER,
            MAX_WAIT,
            JITTER,
            STATUSES,
            PREFER_WAIT,
            SERVER_RETENTION,
            BUDGET_CAPACITY,
            BUDGET_COST,
            BUDGET_REFUND);

    private final String name;
    private final String allowed;
    private final @Nullable T standard;
    private final Function<String, T> parser;
    private final @Nullable Predicate<T> valid;

    /** @param valid null if every value that can be parsed is allowed */
    private ClientSetting(
            String name,
            String allowed,
            @Nullable T standard,
            Function<String, T> parser,
            @Nullable Predicate<T> valid) {
        this.name = name;
        this.allowed = allowed;
        this.standard = standard;
        this.parser = parser;
        this.valid = valid;
    }

    private static ClientSetting<String> text(String name, String allowed, @Nullable String standard, String pattern) {
        return new ClientSetting<>(name, allowed, standard, Function.identity(), v -> v.matches(pattern));
    }

    private static ClientSetting<Integer> integer(String name, @Nullable Integer standard, int least, int most) {
        return new ClientSetting<>(
                name, least + " to " + most, standard, Integer::valueOf, v -> v >= least && v <= most);
    }

    private static ClientSetting<Double> number(String name, String allowed, double standard, int least, int most) {
        return new ClientSetting<>(name, allowed, standard, Double::valueOf, v -> v >= least && v <= most);
    }

    private static ClientSetting<Duration> duration(
            String name, String allowed, Duration standard, boolean aboveZero, Duration longest) {
        return new ClientSetting<>(
                name,
                allowed,
                standard,
                Durations::parse,
                v -> !v.isNegative() && (!aboveZero || !v.isZero()) && v.compareTo(longest) <= 0);
    }

    String propertyName() {
        return name;
    }

    String environmentName() {
        return name.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_');
    }

    /** Whether a variable of the environment is this setting, with underscores between its words or without. */
    boolean isVariable(String other) {
        return environmentName().replace("_", "").equals(other.replace("_", ""));
    }

    /** A key without what relaxed spellings differ in: {@code maxAttempts} and {@code MAX_ATTEMPTS} are {@code max-attempts}. */
    static String relaxed(String name) {
        return name.replace("-", "").replace("_", "").toLowerCase(Locale.ROOT);
    }

    @Nullable
    T standard() {
        return standard;
    }

    /** @throws IdempotenceClientConfigException if {@code text} is malformed or its value is not allowed */
    T parse(String text, String spelling, String source) {
        T value;
        try {
            value = parser.apply(text.trim());
        } catch (IllegalArgumentException e) {
            throw new IdempotenceClientConfigException(
                    spelling, source, "'" + text + "' cannot be read; allowed: " + allowed, e);
        }
        return check(value, spelling, source);
    }

    T check(T value, String spelling, String source) {
        if (valid != null && !valid.test(value)) {
            throw new IdempotenceClientConfigException(
                    spelling, source, value + " is not allowed; allowed: " + allowed);
        }
        return value;
    }

    private static Boolean trueOrFalse(String text) {
        return switch (text.toLowerCase(Locale.ROOT)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException("neither true nor false");
        };
    }

    private static String nonEmpty(String word) {
        if (word.isEmpty()) {
            throw new IllegalArgumentException("the list has an empty item; remove it or its comma");
        }
        return word;
    }

    private static <E> Set<E> list(String text, Function<String, E> parser) {
        Set<E> set = new LinkedHashSet<>();
        if (text.isBlank()) {
            return set;
        }
        Arrays.stream(text.split(",", -1))
                .map(String::trim)
                .map(ClientSetting::nonEmpty)
                .map(parser)
                .forEach(set::add);
        return Collections.unmodifiableSet(set);
    }
}
