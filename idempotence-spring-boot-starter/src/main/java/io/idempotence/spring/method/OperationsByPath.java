package io.idempotence.spring.method;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.springframework.http.server.PathContainer;
import org.springframework.web.servlet.mvc.condition.PathPatternsRequestCondition;
import org.springframework.web.util.pattern.PathPattern;

/**
 * The operations that may handle a path. Those whose paths are literal are found by the path, so that only the others are tried for each
 * request. Immutable.
 *
 * @param literal by each path, in the form of {@link #form}
 * @param others those with patterns, or whose mappings compare strings
 */
record OperationsByPath(
        List<HandlerOperation> all, Map<String, List<HandlerOperation>> literal, List<HandlerOperation> others) {

    static OperationsByPath of(List<HandlerOperation> all) {
        Map<String, List<HandlerOperation>> literal = new HashMap<>();
        List<HandlerOperation> others = new ArrayList<>();
        for (HandlerOperation operation : all) {
            PathPatternsRequestCondition paths = operation.mapping().getPathPatternsCondition();
            if (paths == null || paths.getPatterns().stream().anyMatch(PathPattern::hasPatternSyntax)) {
                others.add(operation);
            } else {
                paths.getPatterns()
                        .forEach(
                                path -> literal.computeIfAbsent(form(path.getPatternString()), any -> new ArrayList<>())
                                        .add(operation));
            }
        }
        return new OperationsByPath(List.copyOf(all), literal, others);
    }

    /** Whether any operation that may handle a path has a property. */
    boolean anyMatch(PathContainer path, Predicate<HandlerOperation> property) {
        return (!literal.isEmpty()
                        && literal.getOrDefault(form(path), List.of()).stream().anyMatch(property))
                || others.stream().anyMatch(property);
    }

    /** A path as a pattern compares it: without parameters, and decoded. */
    private static String form(PathContainer path) {
        StringBuilder compared = new StringBuilder();
        for (PathContainer.Element element : path.elements()) {
            compared.append(
                    element instanceof PathContainer.PathSegment segment ? segment.valueToMatch() : element.value());
        }
        return form(compared.toString());
    }

    /** Applications may ignore case and a last slash, so this does. The mapping itself decides. */
    private static String form(String path) {
        int end = path.endsWith("/") ? path.length() - 1 : path.length();
        StringBuilder form = new StringBuilder(end);
        for (int i = 0; i < end; i++) {
            form.append(Character.toLowerCase(path.charAt(i)));
        }
        return form.toString();
    }
}
