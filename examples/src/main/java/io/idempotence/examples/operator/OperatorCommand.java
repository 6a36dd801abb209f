package io.idempotence.examples.operator;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.IdempotenceStorage;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParentCommand;

/** What all commands share: storage, namespace, output. */
abstract class OperatorCommand implements Callable<Integer> {
    private static final Duration BETWEEN_PROGRESS = Duration.ofSeconds(2);

    @ParentCommand
    private @Nullable OperatorTool tool;

    @Mixin
    private final StorageOptions storage = new StorageOptions();

    @Option(
            names = "--namespace",
            paramLabel = "<name>",
            description =
                    "The service, as in Idempotence.builder(...).namespace(...). Default: default, or that of --key.")
    private @Nullable String namespace;

    @Option(names = "--json", description = "JSON instead of a table.")
    private boolean json;

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    private boolean help;

    @Override
    public final Integer call() {
        String service = namespace(namespaceOfKey());
        check();
        try (IdempotenceStorage opened = storage.open(tool().environment())) {
            return run(IdempotenceAdmin.of(opened, service), new Output(tool().out(), json));
        }
    }

    private String namespace(Optional<String> ofKey) {
        if (namespace != null && ofKey.isPresent() && !ofKey.get().equals(namespace)) {
            throw new IllegalArgumentException(
                    "--key is of namespace " + ofKey.get() + ", not of --namespace " + namespace);
        }
        return ofKey.orElse(namespace != null ? namespace : "default");
    }

    /** The namespace that a key names. */
    Optional<String> namespaceOfKey() {
        return Optional.empty();
    }

    /** Looks at the options before anything is opened. */
    void check() {}

    /** Does the work; returns the exit code. */
    abstract int run(IdempotenceAdmin admin, Output output);

    OperatorTool tool() {
        return Objects.requireNonNull(tool);
    }

    PrintStream err() {
        return tool().err();
    }

    Progress progress() {
        return new Progress(err(), BETWEEN_PROGRESS);
    }
}
