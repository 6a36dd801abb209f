package io.idempotence.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Every table and plot of the documentation. */
@Command(
        name = "all",
        sortOptions = false,
        description =
                "Runs server, record and client, in about 13 minutes; with --everything also scale and jmh, in 20.")
final class AllCommand implements Callable<Integer> {
    @Option(names = "--everything", description = "also scale, which needs 2 GB of free memory, and jmh")
    private boolean everything;

    @Option(names = "--quick", description = "a try-out of 2 minutes; its figures mean nothing")
    private boolean quick;

    @Mixin
    private ResultsOption results = new ResultsOption();

    @Override
    public Integer call() {
        List<String> commands = new ArrayList<>(List.of("server", "record", "client"));
        if (everything) {
            commands.addAll(List.of("scale", "jmh"));
        }
        int worst = 0;
        for (String command : commands) {
            System.err.println("== " + command);
            worst = Math.max(worst, new CommandLine(new Benchmarks()).execute(arguments(command)));
        }
        return worst;
    }

    private String[] arguments(String command) {
        List<String> arguments = new ArrayList<>(List.of(command));
        arguments.addAll(results.arguments());
        if (quick) {
            arguments.addAll(
                    switch (command) {
                        case "record" -> List.of("--records", "1000");
                        case "scale" ->
                            List.of("--records", "100,1000", "--rounds", "1", "--warm-ups", "1", "--seconds", "0.1");
                        case "jmh" -> List.of("--rounds", "1", "--warm-up-seconds", "1", "--seconds", "1");
                        default -> List.of("--rounds", "1", "--warm-ups", "1", "--seconds", "0.3");
                    });
        }
        return arguments.toArray(String[]::new);
    }
}
