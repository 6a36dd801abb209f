package io.idempotence.cli;

import io.idempotence.internal.Durations;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.TypeConversionException;

/**
 * The command-line tool {@code idempotence}, for the people who run a service. It finds one record, lists uncertain ones, resolves or
 * deletes one, and counts them. {@code docs/operations.md} describes when to use it.
 */
@Command(
        name = "idempotence",
        sortOptions = false,
        description = "Inspects the records of a service and resolves uncertain ones. No command runs an operation.",
        subcommands = {
            FindCommand.class,
            ListCommand.class,
            ResolveCommand.class,
            DeleteCommand.class,
            StatsCommand.class
        },
        versionProvider = Version.class,
        synopsisSubcommandLabel = "(find | list | resolve | delete | stats)",
        exitCodeListHeading = "Exit codes:%n",
        exitCodeList = {
            "0:done",
            "1:no such record, or nothing was changed, or the record cannot be read",
            "2:the options are wrong, or there was no terminal to ask on",
            "3:the storage cannot be used, the tool failed, or its output could not be written"
        })
public final class OperatorTool {
    static final int OK = 0;
    static final int NOT_DONE = 1;
    static final int USAGE = 2;
    static final int UNAVAILABLE = 3;

    /** What the JVM puts in place of a byte that its locale cannot decode. */
    private static final char UNREADABLE = '\ufffd';

    private final PrintStream out;
    private final PrintStream err;
    private final Terminal terminal;
    private final Map<String, String> environment;

    @Mixin
    private final StorageOptions storage = new StorageOptions();

    @Option(
            scope = ScopeType.INHERIT,
            names = "--namespace",
            paramLabel = "<name>",
            description =
                    "The service, as in Idempotence.builder(...).namespace(...). Default: default, or that of --key.")
    private @Nullable String namespace;

    @Option(scope = ScopeType.INHERIT, names = "--json", description = "JSON instead of a table.")
    private boolean json;

    @Option(names = "--help", usageHelp = true, description = "Print this and exit; each command has its own --help.")
    boolean help;

    @Option(names = "--version", versionHelp = true, description = "Print the version and exit.")
    boolean version;

    OperatorTool(PrintStream out, PrintStream err, Terminal terminal, Map<String, String> environment) {
        this.out = out;
        this.err = err;
        this.terminal = terminal;
        this.environment = environment;
    }

    /**
     * Runs one command and ends the JVM with its exit code.
     *
     * @param args see {@code --help}
     */
    public static void main(String[] args) {
        System.exit(
                run(new FileOutputStream(FileDescriptor.out), System.err, Terminal.system(), System.getenv(), args));
    }

    static int run(
            OutputStream stdout, PrintStream err, Terminal terminal, Map<String, String> environment, String... args) {
        WatchedStream watched = new WatchedStream(stdout);
        PrintStream out = new PrintStream(new BufferedOutputStream(watched), false, StandardCharsets.UTF_8);
        int exitCode;
        try {
            exitCode = execute(out, err, terminal, environment, args);
        } catch (Error e) {
            // The JVM would end with 1, which means that there is no record.
            e.printStackTrace(err);
            exitCode = UNAVAILABLE;
        }
        out.flush();
        String lost = watched.failure();
        if (lost == null) {
            return exitCode;
        }
        err.println("the output is not complete, because it could not be written: " + lost);
        return exitCode == OK ? UNAVAILABLE : exitCode;
    }

    private static int execute(
            PrintStream out, PrintStream err, Terminal terminal, Map<String, String> environment, String... args) {
        if (Arrays.stream(args).anyMatch(argument -> argument.indexOf(UNREADABLE) >= 0)) {
            err.println(
                    "an argument has a character that this locale cannot represent; set LC_ALL=C.UTF-8, or use --key");
            return USAGE;
        }
        return new CommandLine(new OperatorTool(out, err, terminal, environment))
                .setOut(new PrintWriter(out, true, StandardCharsets.UTF_8))
                .setErr(new PrintWriter(err, true, StandardCharsets.UTF_8))
                .setExpandAtFiles(false)
                .setUsageHelpWidth(110)
                .registerConverter(Duration.class, OperatorTool::duration)
                .setParameterExceptionHandler((e, input) -> wrongOptions(e))
                .setExecutionExceptionHandler((e, command, parsed) -> failed(e, command))
                .execute(args);
    }

    private static Duration duration(String text) {
        Duration duration;
        try {
            duration = Durations.parse(text);
        } catch (IllegalArgumentException e) {
            throw new TypeConversionException(e.getMessage());
        }
        if (duration.isNegative()) {
            throw new TypeConversionException("'" + text + "' is negative");
        }
        return duration;
    }

    private static int wrongOptions(ParameterException e) {
        CommandLine command = e.getCommandLine();
        command.getErr().println(withoutPassword(e.getMessage()));
        command.getErr().println("See '" + command.getCommandSpec().qualifiedName() + " --help'.");
        return USAGE;
    }

    private static int failed(Exception e, CommandLine command) {
        if (e instanceof Output.ClosedException) {
            return OK;
        }
        if (e instanceof IllegalArgumentException) {
            return wrongOptions(new ParameterException(command, String.valueOf(e.getMessage())));
        }
        if (e instanceof StorageUnavailableException) {
            command.getErr().println(withoutPassword(e.getMessage()));
            return UNAVAILABLE;
        }
        if (e instanceof CorruptRecordException) {
            command.getErr().println(withoutPassword(e.getMessage()));
            return NOT_DONE;
        }
        e.printStackTrace(command.getErr());
        return UNAVAILABLE;
    }

    /** Removes a password from a message of the parser, which repeats a misplaced argument, perhaps a URI. */
    private static String withoutPassword(@Nullable String message) {
        return String.valueOf(message)
                .replaceAll("://[^\\s'\"]*@", "://...@")
                .replaceAll("(?i)(password=)[^\\s&;'\"]*", "$1...");
    }

    IdempotenceStorage openStorage() {
        return storage.open(environment);
    }

    @Nullable
    String namespace() {
        return namespace;
    }

    Output output() {
        return new Output(out, json);
    }

    PrintStream err() {
        return err;
    }

    Terminal terminal() {
        return terminal;
    }

    Map<String, String> environment() {
        return environment;
    }
}
