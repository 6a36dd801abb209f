package io.idempotence;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The rule that classes depend on each other in one direction. Nested classes count as their top-level class. These dependencies do not
 * count:
 *
 * <ul>
 *   <li>of a type on its subtypes and on its builder, which it names in static factories and in {@code permits};
 *   <li>on a class literal, which names a logger or is the value of an annotation: nothing of the class is used.
 * </ul>
 */
public final class ClassCycles {
    private ClassCycles() {}

    /** No class depends on itself through others. */
    public static ArchRule none() {
        return classes().should(new NotDependOnThemselves());
    }

    private static boolean counts(Dependency dependency) {
        JavaClass from = topLevel(dependency.getOriginClass());
        JavaClass to = topLevel(dependency.getTargetClass());
        return !to.isAssignableTo(from.getName())
                && !to.getName().equals(from.getName() + "Builder")
                && !isLiteral(dependency.getDescription());
    }

    private static boolean isLiteral(String dependency) {
        return dependency.contains(" references class object ") || dependency.contains(" annotation member of type ");
    }

    private static JavaClass topLevel(JavaClass type) {
        return type.getEnclosingClass().map(ClassCycles::topLevel).orElse(type);
    }

    /** A search for cycles, because ArchUnit 1.5.0 finds only some of those of this product. */
    private static final class NotDependOnThemselves extends ArchCondition<JavaClass> {
        /** One dependency for each pair of top-level classes, by the names of both. */
        private final Map<String, Map<String, Dependency>> arrows = new HashMap<>();

        NotDependOnThemselves() {
            super("not depend on themselves through others");
        }

        @Override
        public void init(Collection<JavaClass> types) {
            arrows.clear();
            for (JavaClass type : types) {
                for (Dependency dependency : type.getDirectDependenciesFromSelf()) {
                    if (counts(dependency)) {
                        arrows.computeIfAbsent(topLevel(type).getName(), from -> new TreeMap<>())
                                .putIfAbsent(
                                        topLevel(dependency.getTargetClass()).getName(), dependency);
                    }
                }
            }
        }

        @Override
        public void check(JavaClass type, ConditionEvents events) {
            String cycle = shortestCycle(type.getName());
            if (!cycle.isEmpty()) {
                events.add(SimpleConditionEvent.violated(type, type.getName() + " depends on itself:" + cycle));
            }
        }

        /** The dependencies that lead from a class back to it; empty if there are none. */
        private String shortestCycle(String start) {
            Map<String, String> ways = new HashMap<>(Map.of(start, ""));
            Deque<String> reached = new ArrayDeque<>(Set.of(start));
            while (!reached.isEmpty()) {
                String from = reached.remove();
                for (Map.Entry<String, Dependency> arrow :
                        arrows.getOrDefault(from, Map.of()).entrySet()) {
                    String way = ways.get(from) + "\n    " + arrow.getValue().getDescription();
                    if (arrow.getKey().equals(start)) {
                        return way;
                    }
                    if (ways.putIfAbsent(arrow.getKey(), way) == null) {
                        reached.add(arrow.getKey());
                    }
                }
            }
            return "";
        }
    }
}
