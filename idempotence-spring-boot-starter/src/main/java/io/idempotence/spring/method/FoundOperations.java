package io.idempotence.spring.method;

import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.Verdict;
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
            addPolicy(settings, declared, operation.policy());
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
        addPolicy(settings, operation.declared(), operation.policy());
        return new IdempotentOperation(Kind.METHOD, List.of(), List.of(), operation.handler(), settings);
    }

    private void addPolicy(Map<String, Setting> settings, OperationSettings declared, IdempotencePolicy policy) {
        put(settings, "retention", declared.retention(), policy, known -> text(known.retention()));
        put(settings, "lease", declared.lease(), policy, known -> text(known.lease()));
        put(
                settings,
                "failureRule",
                declared.failureRule(),
                policy,
                known -> known.failureRule().name());
        put(
                settings,
                "onAbandoned",
                declared.onAbandoned(),
                policy,
                known -> known.onAbandoned().name());
        putVerdicts(settings, "keepOn", declared, Verdict.KEEP);
        putVerdicts(settings, "releaseOn", declared, Verdict.RELEASE);
        Duration maxWait = declared.maxWait();
        settings.put(
                "maxWait",
                maxWait != null
                        ? new Setting(text(maxWait), Origin.ANNOTATION)
                        : new Setting(
                                text(sources.maxWait()), sources.isSet("max-wait") ? Origin.PROPERTY : Origin.DEFAULT));
    }

    private void put(
            Map<String, Setting> settings,
            String name,
            @Nullable Object declared,
            IdempotencePolicy policy,
            Function<IdempotencePolicy, String> text) {
        String value = text.apply(policy);
        settings.put(name, new Setting(value, declared != null ? Origin.ANNOTATION : configured(name, value, text)));
    }

    private Origin configured(String name, String value, Function<IdempotencePolicy, String> text) {
        if (sources.isSet("policy." + name) && value.equals(text.apply(sources.policy()))) {
            return Origin.PROPERTY;
        }
        return value.equals(text.apply(IdempotencePolicy.defaults())) ? Origin.DEFAULT : Origin.BEAN;
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

    private static String text(Duration duration) {
        for (var unit : List.of(ChronoUnit.DAYS, ChronoUnit.HOURS, ChronoUnit.MINUTES, ChronoUnit.SECONDS)) {
            if (duration.toMillis() % unit.getDuration().toMillis() == 0) {
                return DurationStyle.SIMPLE.print(duration, unit);
            }
        }
        return DurationStyle.SIMPLE.print(duration, ChronoUnit.MILLIS);
    }
}
