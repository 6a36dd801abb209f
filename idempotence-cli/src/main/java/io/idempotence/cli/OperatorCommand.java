package io.idempotence.cli;

import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.storage.IdempotenceStorage;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParentCommand;

/** A command on the records of one namespace. It opens the storage and prints its result. */
abstract class OperatorCommand implements Callable<Integer> {
    private static final Duration BETWEEN_PROGRESS = Duration.ofSeconds(2);

    @ParentCommand
    private @Nullable OperatorTool tool;

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    @Override
    public final Integer call() {
        String service = namespace(namespaceOfKey());
        check();
        try (IdempotenceStorage opened = tool().openStorage()) {
            return run(IdempotenceAdmin.of(opened, service), tool().output());
        }
    }

    private String namespace(Optional<String> ofKey) {
        String namespace = tool().namespace();
        if (namespace != null && ofKey.isPresent() && !ofKey.get().equals(namespace)) {
            throw new IllegalArgumentException(
                    "--key is of namespace " + ofKey.get() + ", not of --namespace " + namespace);
        }
        return ofKey.orElse(namespace != null ? namespace : "default");
    }

    /** The namespace of {@code --key}, if that is given. */
    Optional<String> namespaceOfKey() {
        return Optional.empty();
    }

    /** Checks the options before the storage is opened. */
    void check() {}

    /** Runs the command and returns the exit code. */
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
