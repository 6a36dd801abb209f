package io.idempotence.spring.method;

import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.spring.method.IdempotentOperation.Kind;
import io.idempotence.spring.method.IdempotentOperation.Origin;
import io.idempotence.spring.method.IdempotentOperation.Setting;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.MethodClassKey;

/** The operations that are found at start, whose faults fail it. */
final class FoundOperations implements IdempotentOperations, SmartInitializingSingleton {
    private final BeanOperations methods;
    private final @Nullable HandlerOperations handlers;
    private final OperationSources sources;

    /**
     * The settings where the annotation sets nothing. Not the filter's {@code RequestSettings}, whose servlet types an application without
     * requests lacks.
     */
    private record Fallback(IdempotencePolicy policy, Duration maxWait) {}

    /** @param handlers null in an application that does not serve requests */
    FoundOperations(BeanOperations methods, @Nullable HandlerOperations handlers, OperationSources sources) {
        this.methods = methods;
        this.handlers = handlers;
        this.sources = sources;
    }

    @Override
    public void afterSingletonsInstantiated() {
        List<OperationFault> faults = new ArrayList<>();
        Set<MethodClassKey> mapped = handlers == null ? null : handlers.find(faults);
        methods.find(mapped, faults);
        BeanOperations.failOn(faults);
    }

    @Override
    public List<IdempotentOperation> all() {
        Stream<IdempotentOperation> ofHandlers =
                handlers == null ? Stream.of() : handlers.all().stream().map(this::listed);
        return Stream.concat(ofHandlers, methods.all().stream().map(this::listed))
                .sorted(Comparator.comparing(IdempotentOperation::handler)
                        .thenComparing(operation -> operation.paths().toString()))
                .toList();
    }

    private IdempotentOperation listed(HandlerOperation operation) {
        OperationSettings declared = operation.declared();
        Map<String, Setting> settings = new LinkedHashMap<>();
        settings.put("value", new Setting(String.valueOf(declared.isIdempotent()), Origin.ANNOTATION));
        if (declared.isIdempotent()) {
            settings.put("required", new Setting(String.valueOf(declared.required()), Origin.ANNOTATION));
            Map<String, Fallback> fallbacks = new TreeMap<>();
            for (FilterCoverage.Configured one : operation.configured()) {
                fallbacks.put(
                        one.requests(),
                        new Fallback(one.settings().policy(), one.settings().maxWait()));
            }
            addPolicy(settings, declared, fallbacks.isEmpty() ? ofApplication() : fallbacks);
        }
        return new IdempotentOperation(
                Kind.HANDLER,
                operation.methods().stream().map(Enum::name).sorted().toList(),
                operation.paths().stream().sorted().toList(),
                operation.name(),
                settings);
    }

    private IdempotentOperation listed(BeanOperation operation) {
        Map<String, Setting> settings = new LinkedHashMap<>();
        settings.put("id", new Setting(operation.id().toString(), Origin.ANNOTATION));
        settings.put("operation", new Setting(operation.name(), operation.namedBy()));
        addPolicy(settings, operation.declared(), ofApplication());
        return new IdempotentOperation(Kind.METHOD, List.of(), List.of(), operation.handler(), settings);
    }

    private Map<String, Fallback> ofApplication() {
        return Map.of("", new Fallback(sources.policy(), sources.maxWait()));
    }

    /** @param fallbacks by the requests that it applies to */
    private void addPolicy(Map<String, Setting> settings, OperationSettings declared, Map<String, Fallback> fallbacks) {
        put(
                settings,
                "retention",
                textOrNull(declared.retention()),
                fallbacks,
                known -> text(known.policy.retention()));
        put(settings, "lease", textOrNull(declared.lease()), fallbacks, known -> text(known.policy.lease()));
        put(
                settings,
                "failureRule",
                nameOrNull(declared.failureRule()),
                fallbacks,
                known -> known.policy.failureRule().name());
        put(
                settings,
                "onAbandoned",
                nameOrNull(declared.onAbandoned()),
                fallbacks,
                known -> known.policy.onAbandoned().name());
        putVerdicts(settings, "keepOn", declared, Verdict.KEEP);
        putVerdicts(settings, "releaseOn", declared, Verdict.RELEASE);
        put(settings, "maxWait", textOrNull(declared.maxWait()), fallbacks, known -> text(known.maxWait));
    }

    private void put(
            Map<String, Setting> settings,
            String name,
            @Nullable String declared,
            Map<String, Fallback> fallbacks,
            Function<Fallback, String> text) {
        if (declared != null) {
            settings.put(name, new Setting(declared, Origin.ANNOTATION));
            return;
        }
        Map<Setting, List<String>> found = new LinkedHashMap<>();
        fallbacks.forEach((requests, known) -> found.computeIfAbsent(
                        setting(name, text.apply(known), text), setting -> new ArrayList<>())
                .add(requests));
        settings.put(
                name,
                found.size() == 1
                        ? found.keySet().iterator().next()
                        : new Setting(
                                found.entrySet().stream()
                                        .map(one -> one.getKey().value() + " for " + String.join(", ", one.getValue()))
                                        .collect(Collectors.joining("; ")),
                                Origin.BEAN));
    }

    private Setting setting(String name, String value, Function<Fallback, String> text) {
        Fallback ofApplication = new Fallback(sources.policy(), sources.maxWait());
        boolean isSet = sources.isSet(name.equals("maxWait") ? name : "policy." + name);
        if (isSet && value.equals(text.apply(ofApplication))) {
            return new Setting(value, Origin.PROPERTY);
        }
        Fallback byDefault = new Fallback(IdempotencePolicy.defaults(), sources.maxWait());
        return new Setting(value, value.equals(text.apply(byDefault)) ? Origin.DEFAULT : Origin.BEAN);
    }

    private static void putVerdicts(
            Map<String, Setting> settings, String name, OperationSettings declared, Verdict verdict) {
        String types = declared.verdicts().entrySet().stream()
                .filter(entry -> entry.getValue() == verdict)
                .map(entry -> entry.getKey().getSimpleName())
                .collect(Collectors.joining(", "));
        if (!types.isEmpty()) {
            settings.put(name, new Setting(types, Origin.ANNOTATION));
        }
    }

    private static @Nullable String nameOrNull(@Nullable Enum<?> value) {
        return value == null ? null : value.name();
    }

    private static @Nullable String textOrNull(@Nullable Duration duration) {
        return duration == null ? null : text(duration);
    }

    private static String text(Duration duration) {
        for (var unit : List.of(ChronoUnit.DAYS, ChronoUnit.HOURS, ChronoUnit.MINUTES, ChronoUnit.SECONDS)) {
            if (duration.toMillis() % unit.getDuration().toMillis() == 0) {
                return DurationStyle.SIMPLE.print(duration, unit);
            }
        }
        return DurationStyle.SIMPLE.print(duration, ChronoUnit.MILLIS);
    }
}
